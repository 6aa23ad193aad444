"""A TF1 program that gets its cluster by flags, with real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import ROOT
from program_table import RECORDED, REPLICA, losses_by_step

pytestmark = pytest.mark.slow


def test_synchronous_replicas_have_the_losses_of_their_tensorflow(
    tmp_path: Path,
) -> None:
    python = [sys.executable, "-m", "hookbridge"]
    done = subprocess.run(
        [*python, "cluster", "--tf1-flags", "--num_workers=1", "--",
         *python, "run", *REPLICA.command()],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CONFIG": "of somebody else",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    recorded = json.loads(RECORDED.read_text())["mnist_replica"]["losses"]
    expected = [pytest.approx(float(loss), rel=1e-5) for _, loss in recorded]
    # Only the losses are compared: the run that fetches the step also moves it, so the
    # step may be one higher. A worker may also have begun one step more.
    losses = {float(loss) for _, loss in losses_by_step(done.stdout)}
    assert sorted(losses, reverse=True)[: len(expected)] == expected
    for task in ("chief 0", "worker 0"):
        assert f"[{task}] Training elapsed time" in done.stdout
    assert "[ps 0] job name = ps" in done.stdout
