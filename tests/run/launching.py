"""Starts `hookbridge run` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")


def launch(
    *words: str, cwd: Path = PROGRAMS, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `python -m hookbridge run WORDS` and waits for its end."""
    return subprocess.run(
        [sys.executable, "-m", "hookbridge", "run", *words],
        cwd=cwd,
        input=stdin,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
