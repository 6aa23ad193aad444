"""One training in each host, which ends somewhere and goes on in a new run.

All hosts train one weight for `EPOCHS` epochs of `LENGTH` steps. A callback sets the
rate and the weight at each begin and end of an epoch, and counts them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from eager_steps import descended
from estimator_models import estimators
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge.jobs.training.job import StepWatchHook

v1: Any = tf.compat.v1
LENGTH, EPOCHS = 4, 4
RATE = 0.0625


class Left(NamedTuple):
    """What a run leaves."""

    begins: list[int]  # the epochs that the callback has counted as begun
    ends: int  # the epochs' ends that it has counted
    rate: float
    weight: float  # as the newest checkpoint has it
    slot: float | None  # of the optimizer, likewise, where callbacks set one


ERRORS: dict[str, type[BaseException]] = {
    "error": RuntimeError,
    "killed": KeyboardInterrupt,
    "sigterm": SystemExit,
}


class Ending(NamedTuple):
    """How and where a run ends, and what is in its list."""

    how: str
    step: int = 10**6
    save_steps: int = 10**6
    is_saver_first: bool = True
    epochs: int = EPOCHS  # of the run
    watch: Any = None  # ends the run after SIGTERM, as in `hookbridge train`

    def hooks(self) -> list[Any]:
        """The hooks that end the run, of which the last one ends behind callbacks."""
        step = self.step
        if self.how in ("error", "killed"):
            return [at_step(step, lambda context: _raise(ERRORS[self.how]()))]
        if self.how == "later hook":
            return [at_step(step, lambda context: context.request_stop())]
        if self.how == "sigterm":
            return [at_step(step, _sigterm_once()), self.watch]
        return [v1.train.StopAtStepHook(last_step=step)] if self.how == "hook" else []

    @property
    def data_steps(self) -> int | None:
        """How many steps there are data for; None if for all."""
        return self.step if self.how == "data" else None


LAST = Ending("epochs")  # the run that makes all epochs


def _sigterm_once() -> Callable[[Any], None]:
    pending = [os.getpid()]  # a second SIGTERM would end the process

    def send(context: Any) -> None:
        while pending:
            os.kill(pending.pop(), signal.SIGTERM)

    return send


def _raise(error: BaseException) -> None:
    raise error


def at_step(step: int, act: Callable[[Any], None]) -> Any:
    """Acts after the run that ends with a global step."""

    def before_run(self: Any, context: Any) -> Any:
        return v1.train.SessionRunArgs(v1.train.get_global_step())

    def after_run(self: Any, context: Any, values: Any) -> None:
        # The step that is fetched may be the one before the run.
        now = context.session.run(v1.train.get_global_step())
        if now >= step:
            act(context)

    return hook_of(before_run=before_run, after_run=after_run)


def setter(keras: Any, ending: Ending = LAST) -> Any:
    """Counts begins and ends of epochs; sets the rate and the weights at each.

    It ends the run where the ending is that of a callback, and sets the variable that
    an optimizer of a Keras model has for the weight, if there is one.
    """

    def set_both(self: Any, factor: float) -> None:
        rate = self.model.optimizer.learning_rate
        self.last_rate = _value(keras, rate) * factor
        _set(keras, rate, self.last_rate)
        self.model.set_weights([w / factor for w in self.model.get_weights()])
        for slot in slots_of(self.model):
            slot.assign(slot * factor)

    def begin(self: Any, epoch: int, logs: Any = None) -> None:
        self.begins.append(epoch)
        set_both(self, 0.75)

    def end(self: Any, epoch: int, logs: Any = None) -> None:
        self.ends += 1
        set_both(self, 0.5)
        if ending.how == "epoch's callback" and LENGTH * (epoch + 1) == ending.step:
            self.model.stop_training = True

    def batch_end(self: Any, batch: int, logs: Any = None) -> None:
        self.batches += 1
        if ending.how == "callback" and self.batches == ending.step:
            self.model.stop_training = True

    callback = callback_of(
        keras, on_epoch_begin=begin, on_epoch_end=end, on_train_batch_end=batch_end
    )
    callback.begins, callback.ends, callback.batches = [], 0, 0
    callback.last_rate = 0.0
    return callback


def _value(keras: Any, rate: Any) -> float:
    if tf.executing_eagerly():
        return float(rate.numpy())
    return float(keras.backend.get_value(rate))


def _set(keras: Any, rate: Any, value: float) -> None:
    if tf.executing_eagerly():
        rate.assign(value)
    else:
        keras.backend.set_value(rate, value)


def slots_of(model: Any) -> list[Any]:
    """The variables of a Keras optimizer that have the shape of the weight."""
    # In a session a callback can set the rate alone.
    every = getattr(model.optimizer, "variables", [])
    every = every() if callable(every) else every
    return [each for each in every if tuple(each.shape) == (1, 1)]


def weight_in(folder: str) -> float:
    """The one weight in the newest checkpoint."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder))
    names = ("w", "dense/kernel", "sequential/dense/kernel")
    name = next(each for each in names if reader.has_tensor(each))
    return float(np.sum(reader.get_tensor(name)))


def slot_in(folder: str) -> float | None:
    """The accumulator of that weight in the newest checkpoint."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder))
    names = [n for n in reader.get_variable_to_shape_map() if "accumulator" in n]
    return float(np.sum(reader.get_tensor(names[0]))) if names else None


def graph_of(kind: str, loss_of: Callable[[Any], Any]) -> Any:
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


def session(keras: Any, kind: str, callback: Any, folder: str, ending: Ending) -> None:
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensors(0.0).repeat(ending.data_steps)
        batch = v1.data.make_one_shot_iterator(data).get_next()
        _, train_op, rate = graph_of(kind, lambda w: w**2 * (1.0 + batch))
        saver = v1.train.CheckpointSaverHook(folder, save_steps=ending.save_steps)
        guests = [saver, callback]
        if not ending.is_saver_first:
            guests.reverse()
        bridged = hb.as_hooks(
            guests,
            steps_per_epoch=LENGTH,
            epochs=ending.epochs,
            logs={"loss": tf.constant(1.0)},
            learning_rate=rate,
        )
        with v1.train.MonitoredTrainingSession(
            hooks=[*bridged, *ending.hooks()],
            checkpoint_dir=folder,
            save_checkpoint_steps=None,
            save_checkpoint_secs=None,
            save_summaries_steps=0,
            log_step_count_steps=None,
        ) as running:
            while not running.should_stop():
                running.run(train_op)


def estimator(
    keras: Any, kind: str, callback: Any, folder: str, ending: Ending
) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss, train_op, _ = graph_of(kind, lambda w: w**2 * (1.0 + features[0]))
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def data() -> Any:
        return tf.data.Dataset.from_tensors(([0.0], [0.0])).repeat(ending.data_steps)

    config = estimators.RunConfig(save_checkpoints_steps=ending.save_steps)
    made = estimators.Estimator(model_fn, folder, config)
    by_step = ending.how == "hook"
    hooks = [] if by_step else ending.hooks()
    guests = hb.as_hooks([callback], steps_per_epoch=LENGTH, epochs=ending.epochs)
    last = ending.step if by_step else None
    made.train(data, max_steps=last, hooks=[*guests, *hooks])


def compiled(keras: Any, kind: str = "variable") -> Any:
    """A model that learns nothing, so that its weight is what callbacks set.

    Its optimizer has a slot of the weight if the kind is "slot".
    """
    dense = keras.layers.Dense(
        1, use_bias=False, kernel_initializer="ones", name="dense"
    )
    model = keras.Sequential([keras.layers.Input((1,)), dense])
    optimizers = keras.optimizers
    # A v1 graph takes the optimizers of older releases.
    kinds = optimizers if tf.executing_eagerly() else optimizers.legacy
    made = kinds.Adagrad(RATE) if kind == "slot" else kinds.SGD(RATE)
    model.compile(made, "mse")
    if kind == "slot":
        made.build(model.trainable_variables)
    return model


X, Y = np.zeros([LENGTH, 1], "float32"), np.zeros([LENGTH, 1], "float32")


def _in_fit(keras: Any, kind: str, folder: str, ending: Ending, callback: Any) -> Any:
    """A model with the newest checkpoint, its epoch and its list of guests."""
    keras.backend.clear_session()
    model, epoch = compiled(keras, kind), 0
    if tf.train.latest_checkpoint(folder):
        epoch = hb.checkpoints.restore(model, folder).epoch or 0
    saver = v1.train.CheckpointSaverHook(folder, save_steps=ending.save_steps)
    guests = [saver, callback]
    if not ending.is_saver_first:
        guests.reverse()
    return model, epoch, [*guests, *ending.hooks()]


def fit(
    keras: Any,
    kind: str,
    callback: Any,
    folder: str,
    ending: Ending,
) -> None:
    model, epoch, guests = _in_fit(keras, kind, folder, ending, callback)
    data: dict[str, Any] = {"x": X, "y": Y, "batch_size": 1}
    if ending.how == "data":
        pair = tf.data.Dataset.from_tensors((X[:1], Y[:1]))
        data = {"x": pair.repeat(ending.step), "steps_per_epoch": LENGTH}
    model.fit(
        **data,
        epochs=ending.epochs,
        initial_epoch=epoch,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )


def own_loop(keras: Any, kind: str, callback: Any, folder: str, ending: Ending) -> None:
    model, epoch, guests = _in_fit(keras, kind, folder, ending, callback)
    data = iter(tf.data.Dataset.from_tensors(X[:1]).repeat(ending.data_steps))

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> Any:
        return descended(model, lambda: tf.reduce_mean(model(next(data)) ** 2))

    with hb.loops.OwnLoop(
        guests,
        model=model,
        optimizer=model.optimizer,
        steps_per_epoch=LENGTH,
        epochs=ending.epochs,
        initial_epoch=epoch,
    ) as loop:
        while not loop.should_stop():
            loop.step(step)


Host = Callable[[Any, str, Any, str, Ending], None]
HOSTS: dict[str, Host] = {
    "session": session,
    "estimator": estimator,
    "fit": fit,
    "own_loop": own_loop,
}


def left_by(
    keras: Any, kind: str, run: Callable[..., None], endings: Sequence[Ending]
) -> Left:
    """What runs with these endings leave, one after the other in one folder."""
    with tempfile.TemporaryDirectory() as folder:
        for ending in endings:
            callback, watch = setter(keras, ending), StepWatchHook()
            error = ERRORS.get(ending.how)
            with pytest.raises(error) if error else contextlib.nullcontext():
                with watch.saving_at_sigterm():
                    run(keras, kind, callback, folder, ending._replace(watch=watch))
        weight = weight_in(folder)
        slot = slot_in(folder)
    return Left(callback.begins, callback.ends, callback.last_rate, weight, slot)
