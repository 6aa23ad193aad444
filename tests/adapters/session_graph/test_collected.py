"""What programs put into collections themselves: callbacks and recordings cope with it.

Each program trains four steps natively, and the same four with a callback, with each
batch and step told as in the program whose objects are TensorFlow's own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of, step_events

import hookbridge as hb
from hookbridge import errors
from hookbridge.reference.recordings.recording_files import Recording

ONE_KERAS = True

v1: Any = tf.compat.v1
KEYS = v1.GraphKeys
Made = Callable[[], Any]


def variable(use_resource: bool, **options: Any) -> Any:
    options = {"name": "global_step", "trainable": False, **options}
    return v1.Variable(0, use_resource=use_resource, **options)


def collected(key: str, *entries: Any) -> None:
    for entry in entries:
        v1.add_to_collection(key, entry)


def listed_as(entry_of: Callable[[Any], Any]) -> Callable[[bool], Any]:
    """A step of another name, and what the program puts into the collection for it."""

    def make(use_resource: bool) -> Any:
        step = variable(use_resource, name="my_step")
        collected(KEYS.GLOBAL_STEP, entry_of(step))
        return step

    return make


def listed_twice(use_resource: bool) -> Any:
    step = variable(use_resource)
    collected(KEYS.GLOBAL_STEP, step, step)
    return step


STEPS: dict[str, Callable[[bool], Any]] = {
    "by its name": variable,
    "local": lambda r: variable(r, collections=[KEYS.LOCAL_VARIABLES]),
    "a float": lambda r: v1.Variable(
        0.0, name="global_step", trainable=False, use_resource=r
    ),
    "variable": listed_as(lambda step: step),
    "read": listed_as(lambda step: step.read_value()),
    "cast": listed_as(lambda step: tf.cast(step, tf.int64)),
    "list": listed_as(lambda step: [step]),
    "twice": listed_twice,
}


def make_placeholder() -> None:
    v1.placeholder(tf.float32, [], name="global_step")


def make_nothing() -> None:
    collected(KEYS.GLOBAL_STEP, None)


def make_group() -> None:
    tf.group(name="global_step")


def make_partitioned() -> None:
    parts = v1.get_variable(
        "parts", [4], partitioner=v1.fixed_size_partitioner(2), trainable=False
    )
    collected(KEYS.MODEL_VARIABLES, parts, None)
    collected(KEYS.UPDATE_OPS, [p.assign(p) for p in parts], None, parts, "w/Assign")


def make_losses() -> None:
    collected(KEYS.LOSSES, tf.constant([1.0, 2.0]), tf.constant(1.0), None)
    collected(KEYS.SUMMARIES, b"text", v1.summary.scalar("other", 1.0))


def make_metrics() -> None:
    held = v1.Variable(0.0, collections=[KEYS.LOCAL_VARIABLES], name="held")
    collected(KEYS.METRIC_VARIABLES, held, held.read_value(), None)


def make_savers() -> None:
    saver = v1.train.Saver(tf.compat.v1.global_variables(), allow_empty=True)
    collected(KEYS.SAVEABLE_OBJECTS, v1.global_variables()[0])
    collected(KEYS.SAVERS, saver)


# What a program makes, and whether its steps then have no global step.
OTHERS: dict[str, tuple[Callable[[], None], bool]] = {
    "a placeholder of that name": (make_placeholder, True),
    "None in GLOBAL_STEP": (make_nothing, True),
    "an op of that name": (make_group, True),
    "partitioned": (make_partitioned, False),
    "losses": (make_losses, False),
    "metrics": (make_metrics, False),
    "saver": (make_savers, False),
}


def trained(hooks: list[Any], make_step: Made, make: Made, **options: Any) -> float:
    """Four steps; returns the weight after them, or how many there were to a stop."""
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=1.0)
        loss = tf.identity(tf.square(w), name="loss")
        step = make_step()
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, global_step=step)
        make()
        hooks = hb.as_hooks(hooks, steps_per_epoch=2, **options) if hooks else []
        with v1.train.SingularMonitoredSession(hooks=hooks) as session:
            for count in range(4):
                if session.should_stop():
                    return count
                session.run(train_op)
            value: float = session.run(w).item()
    return value


def events(keras: Any, make_step: Made, make: Made = tf.no_op) -> list[str]:
    log: list[str] = []
    native = trained([], make_step, make)
    assert trained([step_events(keras, log)], make_step, make) == native
    return log


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_a_program_made(name: str, use_resource: bool, keras: Any) -> None:
    ours = events(keras, v1.train.get_or_create_global_step)
    assert ours[-1] == "epoch end 1 at 4"
    assert events(keras, lambda: STEPS[name](use_resource)) == ours


@pytest.mark.parametrize("name", OTHERS)
def test_what_else_a_program_made(name: str, keras: Any) -> None:
    make, without_step = OTHERS[name]
    make_step = (lambda: None) if without_step else v1.train.get_or_create_global_step
    ours = events(keras, make_step)
    assert len(ours) == 10
    assert events(keras, make_step, make) == ours


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_recording_knows_the_step(tmp_path: Path, use_resource: bool) -> None:
    trained([hb.recorder(tmp_path)], lambda: variable(use_resource), tf.no_op)
    recording = Recording(tmp_path)
    assert len(recording.steps) == 4
    kinds = {n: v["kind"] for n, v in recording.header["variables"].items()}
    assert kinds == {"w": "weight", "global_step": "counter"}


def test_a_computed_step_is_refused(keras: Any) -> None:
    make_step = listed_as(lambda step: step // 2)
    with pytest.raises(errors.InvalidArgumentError, match="which a `FloorDiv` comp"):
        events(keras, lambda: make_step(False))


def test_a_last_epoch_knows_the_step() -> None:
    """Hooks alone with `epochs`: they stop after the last one."""
    hooks = [v1.train.SessionRunHook()]
    assert trained(hooks, lambda: variable(use_resource=True), tf.no_op, epochs=1) == 2


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_variable_of_unknown_shape(use_resource: bool, keras: Any) -> None:
    """As KMeans of the Estimators has; a callback reads, sets and counts it."""
    seen: list[Any] = []

    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        (weight,) = self.model.weights
        seen.append([weight.numpy().tolist(), self.model.count_params()])
        weight.assign(weight * 2.0)
        seen.append(self.model.get_weights()[0].tolist())
        self.model.set_weights([np.array([3.0, 4.0, 5.0], np.float32)])

    with tf.Graph().as_default():
        first = v1.placeholder_with_default(tf.ones([2]), None)
        w = v1.Variable(first, validate_shape=False, use_resource=use_resource)
        assert w.shape.rank is None
        loss = tf.reduce_sum(w**2)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.25).minimize(loss, step)
        callback = callback_of(keras, on_epoch_end=on_epoch_end)
        hooks = hb.as_hooks([callback], steps_per_epoch=1, epochs=1, logs={"l": loss})
        with v1.train.SingularMonitoredSession(hooks=hooks) as session:
            session.run(train_op)
            after = session.raw_session().run(w).tolist()
    assert seen == [[[0.5, 0.5], 2], [1.0, 1.0]] and after == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_variable_by_the_name_that_tensorflow_prints(
    use_resource: bool, keras: Any
) -> None:
    with tf.Graph().as_default():
        options = {"use_resource": use_resource, "trainable": False}
        rate = v1.get_variable("lr", initializer=0.1, **options)
        w = v1.get_variable("w", initializer=1.0, use_resource=use_resource)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(rate).minimize(w**2, step)
        hooks = hb.as_hooks(
            [keras.callbacks.LearningRateScheduler(lambda epoch: 0.5)],
            steps_per_epoch=1,
            learning_rate=rate.name,
            logs={"w": w.name, "again": (w.name, train_op.name)},
        )
        with v1.train.SingularMonitoredSession(hooks=hooks) as session:
            session.run(train_op)
            assert session.run([w, rate]) == [0.0, 0.5]
