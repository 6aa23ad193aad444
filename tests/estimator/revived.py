"""Whether the Estimator is revived here, and helpers to run code in new processes."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fork_server import ForkServer

from hookbridge.estimator import revive

VERSION = tuple(map(int, importlib.metadata.version("tensorflow").split(".")[:2]))
REVIVED = VERSION > revive.LAST_WITH_ESTIMATOR
only_revived = pytest.mark.skipif(
    not REVIVED, reason="TensorFlow 2.15 has its own Estimator; nothing is revived"
)
ROOT = Path(__file__).resolve().parents[2]


def run(code: str, **environment: str) -> str:
    """Runs `code` in a fresh interpreter; returns its last printed line."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return _last_line(done)


def run_forked(server: ForkServer, code: str, **environment: str) -> str:
    """Runs `code` in a process that has TensorFlow; returns its last printed line."""
    return _last_line(
        server.run("-c", textwrap.dedent(code), folder=ROOT, **environment)
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]
