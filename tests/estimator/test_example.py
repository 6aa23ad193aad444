"""The example runs unchanged on every version."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from fork_server import ForkServer


@pytest.mark.slow
def test_example_trains_evaluates_and_exports(
    repo_root: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    done = fork_server.run(
        str(repo_root / "examples" / "estimator_csv.py"),
        f"--model_dir={tmp_path / 'model'}",
        "--epochs=4",
        folder=tmp_path,
        PATH="",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    accuracy, steps = re.findall(
        r"^accuracy (\S+) after (\d+) steps$", done.stdout, re.M
    )[0]
    served = re.findall(r"^served accuracy (\S+)$", done.stdout, re.M)[0]
    assert float(accuracy) > 0.8 and served == accuracy
    with (tmp_path / "model" / "epochs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and int(steps) % 4 == 0
    assert float(rows[-1]["val_accuracy"]) == pytest.approx(float(accuracy), abs=1e-3)
