"""A TF1 program that gets its cluster by flags, with real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launching import ROOT
from program_table import RECORDED, REPLICA, printed_losses

pytestmark = pytest.mark.slow


def together() -> str:
    """The guests that docs/running-tf1.md advises against TensorFlow's endless wait."""
    page = (ROOT / "docs" / "running-tf1.md").read_text()
    found = re.search(r"```python\n(# together\.py.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def test_synchronous_replicas_have_the_losses_of_their_tensorflow(
    tmp_path: Path,
) -> None:
    python = [sys.executable, "-m", "hookbridge"]
    guests = tmp_path / "together.py"
    guests.write_text(together())
    done = subprocess.run(
        [*python, "cluster", "--tf1-flags", "--num_workers=1", "--",
         *python, "run", f"--guests={guests}", *REPLICA.command()],
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
    # The step and the variables of a run are not read at one moment. So a run may print
    # another step than that of its loss, and a loss between two updates. The optimizer
    # drops the gradient of such a run.
    losses = printed_losses(done.stdout)
    for _, loss in recorded:
        assert any(x == pytest.approx(float(loss), rel=1e-5) for x in losses), loss
    for task in ("chief 0", "worker 0"):
        assert f"[{task}] Training elapsed time" in done.stdout
    assert "[ps 0] job name = ps" in done.stdout
