"""Some rounds of the chaos test; `rounds.py` runs as many as you like."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = Path(__file__).with_name("rounds.py")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one", "async", "sync", "fit"])
def test_a_killed_job_goes_on_from_its_checkpoint(kind: str, tmp_path: Path) -> None:
    flags = [f"--kind={kind}", "--rounds=1", "--seed=1"]
    done = subprocess.run(
        [sys.executable, str(ROUNDS), *flags, f"--folder={tmp_path}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kind}: 1 of 1 rounds survived" in done.stdout
