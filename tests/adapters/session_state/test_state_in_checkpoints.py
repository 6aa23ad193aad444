"""Checkpoints of a session hold what its callbacks did in the same step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, build, counting, feeds, interrupted, session_loop

import hookbridge as hb

ONE_KERAS = True

v1 = tf.compat.v1


def rate_variable() -> Any:
    return v1.get_variable("lr", initializer=0.1, trainable=False)


@pytest.mark.slow
def test_learning_rate_that_is_a_variable_survives(keras: Any, tmp_path: Path) -> None:
    """The rate is reduced at the end of a step; that step's checkpoint has it."""

    def make(k: Any) -> list[Any]:
        return [
            k.callbacks.ReduceLROnPlateau(
                "loss", min_delta=100.0, patience=2, factor=0.5
            )
        ]

    options: dict[str, Any] = {"epochs": 8, "rate": rate_variable, "validate": False}
    whole = session_loop(make(keras), **options)
    # The rate falls at the end of the third epoch.
    again = interrupted(keras, make, tmp_path, 3 * STEPS, **options)
    key = "lr" if "lr" in whole.history else "learning_rate"
    assert len(set(whole.history[key])) > 2
    # A History keeps its epochs too.
    assert again.history[key] == pytest.approx(whole.history[key])
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("ending", ["stopped", "epochs", "cut_short", "data"])
def test_weights_set_at_the_end(keras: Any, tmp_path: Path, ending: str) -> None:
    """The last checkpoint has them, unless the run is cut short to be continued."""

    class Sets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = ending == "stopped" and epoch == 1

        def on_train_end(self, logs: Any = None) -> None:
            self.model.set_weights([0 * w for w in self.model.get_weights()])

    class Data(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        """Ends the data after two epochs."""

        runs = 0

        def before_run(self, run_context: Any) -> None:
            self.runs += 1
            # The loop's first run only reads the step.
            if ending == "data" and self.runs > 1 + 2 * STEPS:
                raise tf.errors.OutOfRangeError(None, None, "no more")

    session_loop(
        [Sets()],
        validate=False,
        epochs=2 if ending == "epochs" else 5,
        max_steps=2 * STEPS if ending == "cut_short" else 100,
        session_options={"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 1},
        wrap=lambda hooks: [*hooks, Data()],
    )
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest.endswith(f"-{2 * STEPS}")
    kernel = tf.train.load_variable(latest, "dense/kernel")
    assert np.any(kernel) == (ending == "cut_short")
    # The saver still lists the last checkpoint, and only once.
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert len(state.all_model_checkpoint_paths) == 5
    assert len(set(state.all_model_checkpoint_paths)) == 5


def test_saver_that_cannot_be_followed_is_reported(
    keras: Any, tmp_path: Path, said: Any
) -> None:
    """A saver given to a Scaffold is in no collection unless somebody adds it."""
    found = []
    for collected in (True, False):
        folder = tmp_path / str(collected)
        with tf.Graph().as_default():
            net = build()
            saver = v1.train.Saver()
            if collected:
                v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
            hooks = hb.as_hooks(keras.callbacks.History(), steps_per_epoch=STEPS)
            with v1.train.MonitoredTrainingSession(
                checkpoint_dir=str(folder),
                scaffold=v1.train.Scaffold(saver=saver),
                hooks=hooks,
            ) as session:
                session.run(net.train_op, feeds(net, 0))
        states = len(list(folder.glob("*.hookbridge.json")))
        found.append((bool(said("Keys.SAVERS")), states))
    # The initial checkpoint has a state too.
    assert found == [(False, 2), (True, 0)]


@pytest.mark.slow
def test_state_of_two_groups(keras: Any, tmp_path: Path) -> None:
    """Two calls of `as_hooks`, as for `train(hooks=)` and `training_hooks`."""

    class Doubles(type(counting(keras))):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches += 2

        def on_train_end(self, logs: Any = None) -> None:
            self.model.set_weights([0 * w for w in self.model.get_weights()])

    def run(max_steps: int) -> tuple[int, int]:
        one, two = counting(keras), Doubles()
        session_loop(
            [one],
            epochs=3,
            validate=False,
            max_steps=max_steps,
            session_options={"checkpoint_dir": str(tmp_path)},
            wrap=lambda hooks: [*hooks, *hb.as_hooks(two, steps_per_epoch=STEPS)],
        )
        return one.batches, two.batches

    assert run(4) == (4, 8)
    assert run(100) == (3 * STEPS, 6 * STEPS)
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest.endswith(f"-{3 * STEPS}")
    assert not np.any(tf.train.load_variable(latest, "dense/kernel"))
    assert len(list(tmp_path.glob("*-9.hookbridge*.json"))) == 1
