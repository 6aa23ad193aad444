"""Whether the Estimator is restored here, and a helper to run code in new processes."""

from __future__ import annotations

import importlib.metadata
import textwrap
from pathlib import Path

import pytest
from fork_server import ForkServer

from hookbridge.estimator import restored_package

VERSION = tuple(map(int, importlib.metadata.version("tensorflow").split(".")[:2]))
RESTORED = VERSION > restored_package.LAST_WITH_ESTIMATOR
only_restored = pytest.mark.skipif(
    not RESTORED,
    reason="TensorFlow 2.15 has its own Estimator; nothing is restored",
)
ROOT = Path(__file__).resolve().parents[2]


def run_forked(server: ForkServer, code: str, **environment: str) -> str:
    """Runs `code` in a process that has TensorFlow; returns its last printed line."""
    done = server.run("-c", textwrap.dedent(code), folder=ROOT, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]
