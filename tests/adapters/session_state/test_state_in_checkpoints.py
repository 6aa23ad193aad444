"""Checkpoints of a session hold what its callbacks did in the same step."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, build, feeds, session_loop
from callback_recorder import callback_of
from hook_fetching import hook_of

import hookbridge as hb

ONE_KERAS = True

v1 = tf.compat.v1


@pytest.mark.parametrize("ending", ["stopped", "epochs", "cut_short", "data"])
def test_weights_set_at_the_end(keras: Any, tmp_path: Path, ending: str) -> None:
    """The last checkpoint has them, unless the run is cut short to be continued."""

    def stop(self: Any, epoch: int, logs: Any) -> None:
        self.model.stop_training = ending == "stopped" and epoch == 1

    def set_weights(self: Any, logs: Any) -> None:
        self.model.set_weights([0 * w for w in self.model.get_weights()])

    runs = itertools.count()

    def end_data(self: Any, context: Any) -> None:
        """Ends the data after two epochs; the loop's first run only reads the step."""
        if next(runs) == 1 + 2 * STEPS and ending == "data":
            raise tf.errors.OutOfRangeError(None, None, "no more")

    session_loop(
        [callback_of(keras, on_epoch_end=stop, on_train_end=set_weights)],
        validate=False,
        epochs=2 if ending == "epochs" else 5,
        max_steps=2 * STEPS if ending == "cut_short" else 100,
        session_options={"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 1},
        wrap=lambda hooks: [*hooks, hook_of(before_run=end_data)],
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
    keras: Any, tmp_path: Path, absl_records: Any
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
        found.append((bool(absl_records("Keys.SAVERS")), states))
    # The initial checkpoint has a state too.
    assert found == [(False, 2), (True, 0)]


class PaddingHook(v1.train.CheckpointSaverHook):  # type: ignore[misc, name-defined]
    """Saves with zeros before the step."""

    def begin(self) -> None:
        self._saver = v1.train.Saver(v1.global_variables(), pad_step_number=True)
        v1.add_to_collection(v1.GraphKeys.SAVERS, self._saver)
        super().begin()


@pytest.mark.parametrize("host", ["session", "fit"])
def test_a_saver_that_pads_the_step(keras: Any, host: str, tmp_path: Path) -> None:
    """The last checkpoint, in the hook's `end` after the callbacks, has its state."""
    saver = PaddingHook(str(tmp_path), save_steps=2)
    guests = [callback_of(keras), saver]
    if host == "session":
        with tf.Graph().as_default():
            train_op = v1.assign_add(v1.train.get_or_create_global_step(), 1)
            hooks = hb.as_hooks(guests, steps_per_epoch=STEPS)
            with v1.train.SingularMonitoredSession(hooks=hooks) as session:
                for _ in range(4):
                    session.run(train_op)
    else:
        model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        ones = np.ones([4, 1], "float32")
        callbacks = hb.as_callbacks(guests)
        model.fit(ones, ones, batch_size=1, verbose=0, callbacks=callbacks)
    states = {path.stem for path in tmp_path.glob("*.hookbridge.json")}
    assert states >= {f"model.ckpt-{4:08d}.hookbridge"}
    assert states == {f"{p.stem}.hookbridge" for p in tmp_path.glob("*.index")}
