"""State goes on from loop to loop, wherever the saver and the callbacks stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_recorder import counting
from fork_server import ForkServer
from shared_loops import ALL, expected, part

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
# The saver is behind, before and among the callbacks; groups are split and swapped.
PARTS = [
    ("session", "stopping count", "reduce other"),
    ("fit", f"{ALL} saver"),
    ("session", "other reduce count", "stopping"),
    ("fit", f"saver {ALL}"),
    ("session", "other count reduce stopping"),
    ("fit", "other count saver reduce stopping"),
    ("session", ALL),
]


def test_state_goes_on(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    bests = None
    for number, each in enumerate(PARTS, start=1):
        with subtests.test(str(number)):
            found = part(keras, str(tmp_path), *each)
            bests = bests or found["bests"]
            assert found == expected(number, bests)
    assert not absl_records("starts over:") and not absl_records("no longer among")


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_state_goes_on_under_parameter_servers(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    import shared_loops

    parts = ["session", "servers", "fit", "servers"]
    done = fork_server.run(str(shared_loops.__file__), str(tmp_path), *parts)
    found = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
    assert len(found) == len(parts), done.stderr
    for number, each in enumerate(found, start=1):
        assert each == expected(number, found[0]["bests"])


def test_a_key_tells_apart_what_looks_alike(keras: Any, tmp_path: Path) -> None:
    def run(keys: str, first: bool) -> dict[str, int]:
        made = {key: counting(keras) for key in keys}
        with tf.Graph().as_default():
            step = v1.train.get_or_create_global_step()
            train_op = v1.assign_add(step, 1)
            hooks = []
            for number, (key, callback) in enumerate(made.items()):
                callback.state_key = key
                hooks += hb.as_hooks([callback], steps_per_epoch=9 + number)
            with v1.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), hooks=hooks, save_summaries_steps=0
            ) as running:
                # What only this process knows shows whose state is whose later.
                for key, callback in made.items():
                    callback.batches += ord(key) if first else 0
                running.run(train_op)
        return {key: callback.batches for key, callback in made.items()}

    assert run("ab", True) == {"a": 98, "b": 99}
    assert run("cba", False) == {"c": 1, "b": 100, "a": 99}
