"""Some rounds of the chaos test; `rounds.py` runs as many as you like."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = Path(__file__).with_name("rounds.py")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rounds", "seed"), [("fit", 1, 1)])
def test_a_killed_job_goes_on_from_its_checkpoint(
    kind: str, rounds: int, seed: int, tmp_path: Path
) -> None:
    flags = [f"--kind={kind}", f"--rounds={rounds}", f"--seed={seed}"]
    done = subprocess.run(
        [sys.executable, str(ROUNDS), *flags, f"--folder={tmp_path}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kind}: {rounds} of {rounds} rounds survived" in done.stdout
