"""A job that has nothing left to do.

TF_CONFIG=... python tests/adapters/parameter_server/brief_job.py EVENTS
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import hookbridge as hb

if __name__ == "__main__":
    hb.loops.parameter_server_strategy()
