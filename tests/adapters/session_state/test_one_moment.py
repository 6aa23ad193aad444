"""Checkpoint, state and what callbacks set are of one moment, however a run ends.

Each host trains to a step that hypothesis chooses, ends there in one of the ways that
it has, and a new run goes on from the newest checkpoint. Together they have to leave
what one undisturbed run leaves: what a callback has counted, the learning rate and the
weights that it has set, and what training has made of these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from hypothesis import strategies as st
from moment_hosts import (
    EPOCHS,
    HOSTS,
    LAST,
    LENGTH,
    RATE,
    Ending,
    at_step,
    graph_of,
    left_by,
    slots_of,
    weight_in,
)

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
ENDS = ("hook", "later hook", "error", "killed", "sigterm")
_PHASE = hypothesis.Phase
FEW = hypothesis.settings(
    derandomize=True,
    max_examples=4,
    deadline=None,
    database=None,
    phases=[_PHASE.explicit, _PHASE.generate],
)

CHOICES = st.tuples(
    st.sampled_from(ENDS),
    st.integers(1, LENGTH * EPOCHS - 1),
    st.integers(1, 2 * LENGTH),
    st.booleans(),
).map(lambda values: Ending(*values))
_WHOLE = (pytest.mark.slow, pytest.mark.exhaustive)
ROWS = [
    ("session", "variable"),
    ("fit", "variable"),
    pytest.param("session", "fed", marks=_WHOLE),
    pytest.param("session", "local", marks=_WHOLE),
    pytest.param("estimator", "variable", marks=_WHOLE),
    pytest.param("own_loop", "variable", marks=_WHOLE),
]


@pytest.mark.parametrize(("host", "kind"), ROWS)
def test_a_run_that_ended_goes_on(keras: Any, host: str, kind: str) -> None:
    whole = left_by(keras, kind, HOSTS[host], [LAST])
    assert (whole.begins, whole.ends) == (list(range(EPOCHS)), EPOCHS)

    @FEW
    @hypothesis.example(Ending("hook", LENGTH + 1, LENGTH, True))
    @hypothesis.example(Ending("later hook", 2 * LENGTH, LENGTH, True))
    @hypothesis.example(Ending("sigterm", LENGTH + 2, 3, True))
    @hypothesis.given(CHOICES)
    def check(ending: Ending) -> None:
        hypothesis.note(str(ending))
        is_lost = ending.how in ("error", "killed") and ending.step % LENGTH == 0
        # Of an epoch with all its steps, `fit` can deliver no end later.
        hypothesis.assume(host in ("session", "estimator") or not is_lost)
        assert left_by(keras, kind, HOSTS[host], [ending, LAST]) == whole

    check()


@pytest.mark.parametrize("host", ["session", "fit", "own_loop"])
@pytest.mark.parametrize("is_early", [True, False])
@pytest.mark.parametrize("is_saver_first", [True, False])
def test_what_the_end_of_training_sets(
    keras: Any, host: str, is_early: bool, is_saver_first: bool, tmp_path: Path
) -> None:
    """It is in the last checkpoint, unless a longer run was ended early."""

    def set_all(self: Any, logs: Any = None) -> None:
        self.model.set_weights([np.full_like(w, 9.0) for w in self.model.get_weights()])

    callback = callback_of(keras, on_train_end=set_all)
    step = LENGTH * EPOCHS - 2 * is_early
    ending = Ending("hook", step, LENGTH, is_saver_first)
    HOSTS[host](keras, "variable", callback, str(tmp_path), ending)
    assert (weight_in(str(tmp_path)) == 9.0) is not is_early
    if host != "session":  # that of a session is closed
        assert callback.model.get_weights()[0] == 9.0


def test_momentum_that_a_callback_sets(keras: Any, tmp_path: Path) -> None:
    """What it has gathered is a variable and kept; the factor is none and is not."""

    def compiled() -> Any:
        dense = keras.layers.Dense(1, use_bias=False, name="dense")
        model = keras.Sequential([keras.Input((1,)), dense])
        model.compile(keras.optimizers.SGD(RATE, momentum=0.5), "mse")
        return model

    def set_both(self: Any, epoch: int, logs: Any = None) -> None:
        self.model.optimizer.momentum = 0.25
        slots_of(self.model)[0].assign([[3.0]])

    saver = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    guests = [saver, callback_of(keras, on_epoch_end=set_both)]
    zeros = np.zeros([LENGTH, 1], "float32")
    compiled().fit(
        zeros, zeros, batch_size=1, verbose=0, callbacks=hb.as_callbacks(guests)
    )
    restored = compiled()
    hb.checkpoints.restore(restored, str(tmp_path))
    assert float(np.sum(slots_of(restored)[0])) == 3.0
    assert restored.optimizer.momentum == 0.5


def test_an_epoch_whose_last_step_another_worker_made(
    keras: Any, tmp_path: Path
) -> None:
    """It has ended when the job ends, and the last checkpoint has what its end set."""
    server = tf.distribute.Server.create_local_server()

    def end(self: Any, epoch: int, logs: Any = None) -> None:
        self.model.set_weights([np.full_like(w, 9.0) for w in self.model.get_weights()])

    def make_last_step(context: Any) -> None:
        with v1.Session(server.target, graph=context.session.graph) as other:
            other.run(train_op)
        context.request_stop()

    with tf.Graph().as_default():
        loss, train_op, _ = graph_of("fed", lambda w: 0.0 * w)
        hooks = hb.as_hooks(
            [callback_of(keras, on_epoch_end=end)],
            steps_per_epoch=LENGTH,
            epochs=1,
            logs={"loss": loss},
        )
        hooks.append(at_step(LENGTH - 1, make_last_step))
        with v1.train.MonitoredTrainingSession(
            server.target, checkpoint_dir=str(tmp_path), hooks=hooks
        ) as session:
            while not session.should_stop():
                session.run(train_op)
    assert weight_in(str(tmp_path)) == 9.0
