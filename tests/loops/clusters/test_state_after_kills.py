"""After a job was killed, every process goes on with the state of its checkpoint."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from cluster_processes import ALL, job
from fork_server import ForkServer


def state_of(latest: str, index: int) -> Any:
    """The state with which a worker has to go on; worker 0 is the chief."""
    own = Path(f"{latest}.hookbridge.worker-{index}.json")
    chief = Path(f"{latest}.hookbridge.json")
    return json.loads((own if index and own.exists() else chief).read_text())


def one_step_less(folder: Path) -> str:
    """Renames the newest checkpoint to one step less; returns its path.

    So it looks as if the other worker had made a step while the chief saved.
    """
    latest = tf.train.latest_checkpoint(str(folder))
    start, _, step = latest.rpartition("-")
    renamed = f"{start}-{int(step) - 1}"
    for file in folder.glob(f"{Path(latest).name}.*"):
        file.rename(renamed + str(file).removeprefix(latest))
    index = folder / "checkpoint"
    index.write_text(index.read_text().replace(f'{latest}"', f'{renamed}"'))
    return renamed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asynchronous", "aggregate=2"])
def test_state_after_all_were_killed(
    tmp_path: Path, fork_server: ForkServer, kind: str
) -> None:
    saved = tmp_path / "saved"
    arguments = (kind, f"dir={saved}", "wait_for_workers=2")
    last = "last_step=100000"
    with job(
        tmp_path / "first", "state_job.py", *arguments, last, server=fork_server
    ) as first:
        for worker in ("worker 0", "worker 1"):
            first.wait_for(worker, "epoch", times=5)
        seen = tf.train.latest_checkpoint(str(saved))
        while tf.train.latest_checkpoint(str(saved)) == seen:
            first.poll()
            assert not first.ended, first.logs()
            time.sleep(0.1)
        for task in ALL:
            first.send(task, signal.SIGKILL)
        first.wait()
    latest = one_step_less(saved)
    # Read now, because the next job's saver removes old checkpoints and their states.
    states = [state_of(latest, index) for index in (0, 1)]
    last = f"last_step={int(latest.rpartition('-')[2]) + 100}"
    with job(
        tmp_path / "second",
        "state_job.py",
        *arguments,
        last,
        server=fork_server,
        start=("ps 0", "worker 0"),
    ) as second:
        # The chief saves in its new session before the other worker starts.
        second.wait_for("worker 0", "epoch")
        second.start("worker 1")
        codes = second.wait()
    assert set(codes.values()) == {0}, second.logs()
    assert "callbacks begin anew" not in second.logs()
    for index, state in enumerate(states):
        noted = second.events(f"worker {index}", "epoch")[0]
        (rate,) = state["loops"][0]["learning_rates"].values()
        wait = state["callbacks"][1]["state"]["wait"]
        assert rate < 0.001 and wait > 0
        # An unfinished epoch may end first: `wait` and the rate then change once more.
        ended = noted["wait"] - wait
        assert ended in (0, 1)
        assert noted["rate"] == pytest.approx(rate * 0.9**ended)
        assert noted["epoch"] >= state["step"] // 5
