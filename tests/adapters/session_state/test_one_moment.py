"""Checkpoint, state and what callbacks set are of one moment, however a run ends.

Each host trains to a step that hypothesis chooses, ends there in one of the ways that
it has, and a new run goes on from the newest checkpoint. Together they have to leave
what one undisturbed run leaves: what a callback has counted, the learning rate and the
weights that it has set, and what training has made of these.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from estimator_models import estimators
from hook_fetching import hook_of
from hypothesis import strategies as st

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
LENGTH, EPOCHS = 4, 4
RATE = 0.0625
ENDS = ("hook", "later hook", "error", "killed")
_PHASE = hypothesis.Phase
FEW = hypothesis.settings(
    derandomize=True,
    max_examples=4,
    deadline=None,
    database=None,
    phases=[_PHASE.explicit, _PHASE.generate],
)


class Left(NamedTuple):
    """What a run leaves."""

    ends: int  # the epochs' ends that the callback has counted
    rate: float
    weight: float  # as the newest checkpoint has it


class Ending(NamedTuple):
    """How and where the first run ends, and what is in its list."""

    how: str
    step: int
    save_steps: int
    is_saver_first: bool

    def hooks(self) -> list[Any]:
        """The hooks that end the run, of which the last one ends behind callbacks."""
        step = self.step
        if self.how in ("error", "killed"):
            error = RuntimeError if self.how == "error" else KeyboardInterrupt
            return [_at_step(step, lambda context: _raise(error()))]
        if self.how == "later hook":
            return [_at_step(step, lambda context: context.request_stop())]
        return [v1.train.StopAtStepHook(last_step=step)]


def _raise(error: BaseException) -> None:
    raise error


def _at_step(step: int, act: Callable[[Any], None]) -> Any:
    """Acts after the run that ends with a global step."""

    def before_run(self: Any, context: Any) -> Any:
        return v1.train.SessionRunArgs(v1.train.get_global_step())

    def after_run(self: Any, context: Any, values: Any) -> None:
        # The step that is fetched may be the one before the run.
        now = context.session.run(v1.train.get_global_step())
        if now >= step:
            act(context)

    return hook_of(before_run=before_run, after_run=after_run)


def setter(keras: Any) -> Any:
    """Counts the ends of epochs; halves the rate and doubles the weights at each."""

    def set_both(self: Any, epoch: int, logs: Any = None) -> None:
        self.ends += 1
        rate = self.model.optimizer.learning_rate
        rate.assign(float(np.asarray(rate)) / 2)
        self.model.set_weights([2 * each for each in self.model.get_weights()])
        self.last_rate = float(np.asarray(self.model.optimizer.learning_rate))

    callback = callback_of(keras, on_epoch_end=set_both)
    callback.ends = 0
    return callback


def rate_of(callback: Any) -> float:
    return float(np.asarray(callback.model.optimizer.learning_rate))


def weight_in(folder: str, *names: str) -> float:
    """The one weight in the newest checkpoint."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder))
    name = next(each for each in names if reader.has_tensor(each))
    return float(np.sum(reader.get_tensor(name)))


def graph_of(kind: str, loss_of: Callable[[Any], Any] = tf.square) -> Any:
    """A weight that is trained with momentum, its loss and the rate to be named."""
    weight = v1.get_variable("w", initializer=1.0)
    rate: Any = RATE
    if kind != "fed":
        keys = v1.GraphKeys
        collection = keys.LOCAL_VARIABLES if kind == "local" else keys.GLOBAL_VARIABLES
        rate = v1.get_variable(
            "rate", initializer=RATE, trainable=False, collections=[collection]
        )
    loss = loss_of(weight)
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.MomentumOptimizer(rate, 0.5).minimize(loss, step)
    return loss, train_op, None if kind == "fed" else rate


def session(kind: str, callback: Any, folder: str, ending: Ending | None) -> float:
    with tf.Graph().as_default():
        loss, train_op, rate = graph_of(kind)
        hooks = [] if ending is None else ending.hooks()
        save_steps = 10**6 if ending is None else ending.save_steps
        saver = v1.train.CheckpointSaverHook(folder, save_steps=save_steps)
        guests = [saver, callback]
        if ending is not None and not ending.is_saver_first:
            guests.reverse()
        bridged = hb.as_hooks(
            guests,
            steps_per_epoch=LENGTH,
            epochs=EPOCHS,
            logs={"loss": loss},
            learning_rate=rate,
        )
        with v1.train.MonitoredTrainingSession(
            hooks=[*bridged, *hooks],
            checkpoint_dir=folder,
            save_checkpoint_steps=None,
            save_checkpoint_secs=None,
            save_summaries_steps=0,
            log_step_count_steps=None,
        ) as running:
            while not running.should_stop():
                running.run(train_op)
    return weight_in(folder, "w")


def estimator(kind: str, callback: Any, folder: str, ending: Ending | None) -> float:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss, train_op, _ = graph_of(kind, lambda w: w**2 + 0.0 * features[0])
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def data() -> Any:
        return tf.data.Dataset.from_tensors(([0.0], [0.0])).repeat()

    config = estimators.RunConfig(
        save_checkpoints_steps=ending.save_steps if ending else 10**6
    )
    made = estimators.Estimator(model_fn, folder, config)
    by_step = ending is None or ending.how == "hook"
    hooks = [] if by_step or ending is None else ending.hooks()
    last = LENGTH * EPOCHS if ending is None else ending.step
    guests = hb.as_hooks([callback], steps_per_epoch=LENGTH, epochs=EPOCHS)
    made.train(data, max_steps=last if by_step else None, hooks=[*guests, *hooks])
    return weight_in(folder, "w")


def compiled(keras: Any) -> Any:
    """A model that learns nothing, so that its weight is what callbacks set."""
    keras.backend.clear_session()
    dense = keras.layers.Dense(
        1, use_bias=False, kernel_initializer="ones", name="dense"
    )
    model = keras.Sequential([keras.Input((1,)), dense])
    model.compile(keras.optimizers.SGD(RATE), "mse")
    return model


X, Y = np.zeros([LENGTH, 1], "float32"), np.zeros([LENGTH, 1], "float32")


def _in_fit(keras: Any, folder: str, ending: Ending | None, callback: Any) -> Any:
    """A model with the newest checkpoint, its epoch and its list of guests."""
    model, epoch = compiled(keras), 0
    if tf.train.latest_checkpoint(folder):
        step = hb.checkpoints.restore(model, folder).global_step
        assert step is not None
        epoch = step // LENGTH
    save_steps = 10**6 if ending is None else ending.save_steps
    saver = v1.train.CheckpointSaverHook(folder, save_steps=save_steps)
    guests = [saver, callback]
    if ending is not None and not ending.is_saver_first:
        guests.reverse()
    return model, epoch, [*guests, *([] if ending is None else ending.hooks())]


def fit(keras: Any, callback: Any, folder: str, ending: Ending | None) -> float:
    model, epoch, guests = _in_fit(keras, folder, ending, callback)
    model.fit(
        X,
        Y,
        batch_size=1,
        epochs=EPOCHS,
        initial_epoch=epoch,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )
    return weight_in(folder, "dense/kernel", "sequential/dense/kernel")


def own_loop(keras: Any, callback: Any, folder: str, ending: Ending | None) -> float:
    model, epoch, guests = _in_fit(keras, folder, ending, callback)

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        own = model.trainable_variables
        model.optimizer.apply_gradients(zip(tape.gradient(loss, own), own, strict=True))
        return loss

    with hb.loops.OwnLoop(
        guests,
        model=model,
        optimizer=model.optimizer,
        steps_per_epoch=LENGTH,
        epochs=EPOCHS,
        initial_epoch=epoch,
    ) as loop:
        while not loop.should_stop():
            loop.step(step, X[:1])
    return weight_in(folder, "dense/kernel", "sequential/dense/kernel")


def left_by(run: Callable[..., float], make: Any, endings: Sequence[Any]) -> Left:
    """What runs with these endings leave, one after the other in one folder."""
    with tempfile.TemporaryDirectory() as folder:
        for ending in endings:
            callback = make()
            how = "" if ending is None else ending.how
            errors = {"error": RuntimeError, "killed": KeyboardInterrupt}.get(how)
            with pytest.raises(errors) if errors else contextlib.nullcontext():
                weight = run(callback, folder, ending)
    return Left(callback.ends, callback.last_rate, weight)


CHOICES = st.builds(
    Ending,
    st.sampled_from(ENDS),
    st.integers(1, LENGTH * EPOCHS - 1),
    st.integers(1, 2 * LENGTH),
    st.booleans(),
)
_SLOW = pytest.mark.slow
HOSTS = [
    pytest.param("session", "fed", marks=_SLOW),
    ("session", "variable"),
    pytest.param("session", "local", marks=_SLOW),
    pytest.param("estimator", "variable", marks=_SLOW),
    ("fit", "variable"),
    pytest.param("own_loop", "variable", marks=_SLOW),
]


@pytest.mark.parametrize(("host", "kind"), HOSTS)
def test_a_run_that_ended_goes_on(keras: Any, host: str, kind: str) -> None:
    def run(callback: Any, folder: str, ending: Ending | None) -> float:
        if host in ("session", "estimator"):
            loops = {"session": session, "estimator": estimator}
            return loops[host](kind, callback, folder, ending)
        return {"fit": fit, "own_loop": own_loop}[host](keras, callback, folder, ending)

    whole = left_by(run, lambda: setter(keras), [None])
    assert whole.ends == EPOCHS

    @FEW
    @hypothesis.example(Ending("hook", LENGTH + 1, LENGTH, True))
    @hypothesis.example(Ending("later hook", 2 * LENGTH, LENGTH, True))
    @hypothesis.given(CHOICES)
    def check(ending: Ending) -> None:
        hypothesis.note(str(ending))
        is_lost = ending.how in ("error", "killed") and ending.step % LENGTH == 0
        # Of an epoch with all its steps, `fit` can deliver no end later.
        hypothesis.assume(host in ("session", "estimator") or not is_lost)
        assert left_by(run, lambda: setter(keras), [ending, None]) == whole

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
    if host == "session":
        found = session("variable", callback, str(tmp_path), ending)
    else:
        found = {"fit": fit, "own_loop": own_loop}[host](
            keras, callback, str(tmp_path), ending
        )
    assert (found == 9.0) is not is_early
    if host != "session":  # that of a session is closed
        assert callback.model.get_weights()[0] == 9.0
