"""Entries of `logs` and the data that fetching them takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1


def numbers(stop: int) -> Any:
    """An iterator over 0.0, 1.0, ...; each `get_next` is an op of its own."""
    data = tf.data.Dataset.range(stop).map(lambda n: tf.cast(n, tf.float32))
    return v1.data.make_one_shot_iterator(data)


def minimize(loss: Any) -> Any:
    optimizer = v1.train.GradientDescentOptimizer(0.0)
    return optimizer.minimize(loss, v1.train.get_or_create_global_step())


def epoch_logs(keras: Any, seen: list[Any]) -> Any:
    class Logs(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append(dict(logs))

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(dict(logs))

    return Logs()


@pytest.mark.parametrize("how", ["same_iterator", "other_iterator", "queue", "call"])
def test_entry_that_takes_data_of_its_own_is_refused(keras: Any, how: str) -> None:
    """Refused before the first step; the training data is untouched."""
    with tf.Graph().as_default():
        iterator = numbers(10)
        weight = v1.get_variable("w", initializer=1.0)
        loss = tf.identity(weight * iterator.get_next(), name="loss")
        if how == "same_iterator":
            other = iterator.get_next()
        elif how == "other_iterator":
            other = numbers(3).get_next()
        elif how == "call":
            # The iterator is an argument of a function.
            resource = iterator._iterator_resource

            @tf.function  # type: ignore[untyped-decorator]
            def next_number() -> Any:
                spec = {"output_types": [tf.float32], "output_shapes": [[]]}
                return tf.raw_ops.IteratorGetNext(iterator=resource, **spec)[0]

            other = next_number()
        else:
            queue = tf.queue.FIFOQueue(5, tf.float32, [])
            other = queue.dequeue()
        train = minimize(loss)
        entry = tf.identity(weight * other, name="entry")
        hooks = hb.as_hooks(
            epoch_logs(keras, []), steps_per_epoch=2, logs={"more": entry}
        )
        left: list[Any] = []
        with (
            pytest.raises(errors.RefusedError, match=r'logs\["more"\].*"entry:0"') as e,
            v1.train.MonitoredTrainingSession(hooks=hooks) as session,
        ):
            try:
                session.run(train)
            finally:
                step = v1.train.get_global_step()
                left.extend(session._tf_sess().run([step, loss]))
        assert left == [0, 0.0]
        for way_out in ("get_next()", "validation="):
            assert way_out in str(e.value)


def test_entry_that_the_loop_fetches_anyway_is_carried(keras: Any) -> None:
    seen: list[Any] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        iterator = numbers(8)
        loss = tf.identity(weight * iterator.get_next(), name="loss")
        other = tf.identity(numbers(8).get_next() * 10.0)
        train = minimize(loss)
        hooks = hb.as_hooks(
            epoch_logs(keras, seen), steps_per_epoch=4, logs={"other": other}
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            fetched = [session.run([train, other])[1] for _ in range(8)]
    np.testing.assert_array_equal(fetched, np.arange(8) * 10.0)
    assert seen == [{"loss": 1.5, "other": 15.0}, {"loss": 5.5, "other": 55.0}]


def test_entries_of_two_kinds_of_steps(keras: Any) -> None:
    """As for generator and discriminator: each entry is fetched in its own steps."""
    seen: list[Any] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        first = tf.identity(weight * numbers(4).get_next())
        second = tf.identity(weight * numbers(4).get_next() * 100.0)
        trains = [minimize(first), minimize(second)]
        hooks = hb.as_hooks(
            epoch_logs(keras, seen),
            steps_per_epoch=4,
            logs={"loss": first, "second": second},
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(4):
                for train in trains:
                    session.run(train)
    assert seen == [{"loss": 0.5, "second": 50.0}, {"loss": 2.5, "second": 250.0}]


def test_entry_of_an_evaluation(keras: Any) -> None:
    with tf.Graph().as_default():
        iterator = numbers(4)
        loss = tf.identity(iterator.get_next(), name="loss")
        collections = [v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.EVAL_STEP]
        counter = v1.get_variable(
            "eval_step", initializer=0, trainable=False, collections=collections
        )
        with tf.control_dependencies([loss]):
            run = v1.assign_add(counter, 1).op
        hooks = hb.as_hooks(
            epoch_logs(keras, []), logs={"more": tf.identity(iterator.get_next())}
        )
        with (
            pytest.raises(errors.RefusedError, match="more"),
            v1.train.MonitoredSession(hooks=hooks) as session,
        ):
            session.run(run)
