"""Where the entries of `logs` come from, and the data that fetching them takes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import X, build, feeds, until_stop
from callback_recorder import callback_of, noting
from estimator_models import KERAS2, estimators, eval_input, train_input

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.session_graph import log_sources

ONE_KERAS = True

v1: Any = tf.compat.v1


def minimize(loss: Any) -> Any:
    optimizer = v1.train.GradientDescentOptimizer(0.0)
    return optimizer.minimize(loss, v1.train.get_or_create_global_step())


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Metrics whose names differ from those of their ops; one is a Keras metric."""
    kernel = v1.get_variable("kernel", initializer=np.ones((2, 1), "float32"))
    outputs = features @ kernel
    data_loss = tf.reduce_mean(tf.square(outputs - labels))
    penalty = 100.0 + 0.0 * tf.reduce_sum(kernel)
    v1.summary.scalar("loss_1", data_loss)
    v1.summary.scalar("loss_2", penalty)
    metrics = {}
    if mode == estimators.ModeKeys.EVAL:
        metrics["pos"] = v1.metrics.mean(tf.cast(outputs > 0, tf.float32))
        keras_metric = importlib.import_module(KERAS2).metrics.MeanAbsoluteError()
        keras_metric.update_state(labels, outputs)
        metrics["distance"] = keras_metric
        metrics["acc"] = v1.metrics.accuracy(labels > 0, outputs > 0)
    return estimators.EstimatorSpec(
        mode,
        loss=data_loss + penalty,
        train_op=minimize(data_loss + penalty),
        eval_metric_ops=metrics,
    )


KEYS = ["loss", "pos", "distance", "acc"]


def of_name(weight: Any) -> Any:
    """The summary is of a term."""
    term = weight * 2.0
    v1.summary.scalar("loss_1", term)
    return tf.add(term, 1.0, name="loss")


def of_summary(weight: Any) -> Any:
    total = tf.multiply(weight, 2.0, name="loss") + 1.0
    v1.summary.scalar("loss", total)
    return total


def of_numbered_summary(weight: Any) -> Any:
    total = weight * 2.0
    v1.summary.scalar("loss_1", total)
    return total


def none_of_two(weight: Any) -> Any:
    v1.summary.scalar("loss_1", weight * 2.0)
    v1.summary.scalar("loss_2", weight * 3.0)


@pytest.mark.parametrize(
    "make", [of_name, of_summary, of_numbered_summary, none_of_two]
)
def test_loss_of_a_bare_graph(make: Any, graph: Any) -> None:
    expected = make(v1.get_variable("w", initializer=1.0))
    assert log_sources.find_loss(graph) is expected


def test_losses_in_the_collection_are_added(graph: Any) -> None:
    for loss in (1.0, 2.0):
        v1.losses.add_loss(tf.constant(loss))
    with v1.Session() as session:
        assert session.run(log_sources.find_loss(graph)) == 3.0


@pytest.mark.parametrize("is_of_keras", [False, True])
def test_metrics_that_keep_their_mean_begin_anew_in_each_epoch(
    keras2: Any, is_of_keras: bool
) -> None:
    history = keras2.callbacks.History()
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(6)
        batch = tf.cast(v1.data.make_one_shot_iterator(data).get_next(), "float32")
        weight = v1.get_variable("w", initializer=1.0)
        train_op = minimize(weight * batch)
        if is_of_keras:
            metric = keras2.metrics.Mean(name="mean")
            train_op = tf.group(train_op, metric.update_state(batch))
        else:
            metric = v1.metrics.mean(batch)
        hooks = hb.as_hooks(history, steps_per_epoch=2, logs={"mean": metric})
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train_op)
    assert history.history["mean"] == [0.5, 2.5, 4.5]


def test_numbers_of_unknown_rank_are_averaged(keras: Any) -> None:
    history = keras.callbacks.History()
    with tf.Graph().as_default():
        counter = v1.train.get_or_create_global_step()
        weight = v1.get_variable("w", initializer=1.0)
        step = tf.numpy_function(np.float32, [counter.read_value()], tf.float32)
        loss = tf.identity(step + weight, name="loss")
        row = tf.numpy_function(lambda s: np.array([s, s]), [step], tf.float32)
        train_op = minimize(loss)
        hooks = hb.as_hooks(history, steps_per_epoch=3, epochs=2, logs={"row": row})
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            seen = []
            while not session.should_stop():
                seen.append(session.run([train_op, loss])[1])
    assert loss.shape.rank is None
    assert history.history["loss"] == [np.mean(seen[:3]), np.mean(seen[3:])]
    assert [len(r) for r in history.history["row"]] == [2, 2]  # no number: kept as is


def test_names_of_an_evaluation_are_those_of_its_result(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    """In every event: the loss, then the metrics in the order of the model_fn."""
    batches: list[Any] = []
    ends: list[Any] = []
    history = keras.callbacks.History()
    notes = callback_of(
        keras,
        on_test_batch_end=lambda self, batch, logs: batches.append(dict(logs)),
        on_test_end=lambda self, logs: ends.append(dict(logs)),
    )
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    hooks = hb.as_hooks(
        [notes, history],
        steps_per_epoch=3,
        epochs=1,
        validation=(estimator, estimators.EvalSpec(eval_input, steps=None)),
    )
    estimator.train(train_input, hooks=hooks)
    assert list(history.history) == ["loss", *(f"val_{key}" for key in KEYS)]
    result = estimator.evaluate(eval_input, hooks=hb.as_hooks(notes))
    result.pop("global_step")
    # The loss of the training is that of the spec, whatever the summaries.
    assert history.history["loss"] == [pytest.approx(float(result["loss"]))]
    assert len(ends) == 2
    for logs in (*ends, *batches):
        with subtests.test(str(logs)):
            assert list(logs) == KEYS
    for logs in (*ends, batches[-1], batches[len(batches) // 2 - 1]):
        with subtests.test(str(logs)):
            assert logs == pytest.approx({k: float(v) for k, v in result.items()})
    # Running means, the first batch included.
    first = X[:4] @ np.ones((2, 1), "float32")
    assert batches[0]["pos"] == pytest.approx(np.mean(first > 0))
    assert batches[0]["distance"] > 0


def train_to_nan(callback: Any, steps: list[int], **options: Any) -> None:
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        train_op = minimize(tf.multiply(weight, float("nan"), name="my_loss"))
        hooks = hb.as_hooks(callback, steps_per_epoch=3, epochs=2, **options)
        steps.append(until_stop(hooks, train_op))


def test_a_loss_that_is_not_found_is_reported(
    subtests: pytest.Subtests, keras: Any, absl_records: Any
) -> None:
    steps: list[int] = []
    terminate = keras.callbacks.TerminateOnNaN
    with pytest.raises(
        errors.UnknownMetricError, match=r'(?s)TerminateOnNaN.*logs=\{"loss": <tensor'
    ):
        train_to_nan(terminate(), steps)
    train_to_nan(terminate(), steps, logs={"loss": "my_loss"})
    assert steps == [1]
    for records, logs in enumerate(({"loss": "my_loss"}, {"d_loss": "my_loss"}, None)):
        with subtests.test(str(records)):
            before = len({id(r) for r in absl_records("the loss of this")})
            train_to_nan(keras.callbacks.History(), [], logs=logs)
            now = len({id(r) for r in absl_records("the loss of this")})
            assert now - before == (records == 2)


def test_validation_by_a_function_runs_eagerly(keras: Any) -> None:
    history, seen = keras.callbacks.History(), list[Any]()
    tests = callback_of(
        keras,
        on_test_begin=lambda self, logs: seen.append("begin"),
        on_test_end=lambda self, logs: seen.append(sorted(logs)),
    )
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def validate() -> dict[str, Any]:
        mean = float(tf.reduce_mean(tf.constant([1.0, 2.0])))
        return {"mean": mean, "loss": model.evaluate(X[:4], X[:4, :1], verbose=0)}

    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks([tests, history], steps_per_epoch=1, validation=validate)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(net.train_op, feeds(net, 0))
    assert history.history["val_mean"] == [1.5]
    assert np.isfinite(history.history["val_loss"])
    assert seen == ["begin", ["loss", "mean"]]


def numbers(stop: int) -> Any:
    """An iterator over 0.0, 1.0, ...; each `get_next` is an op of its own."""
    data = tf.data.Dataset.range(stop).map(lambda n: tf.cast(n, tf.float32))
    return v1.data.make_one_shot_iterator(data)


def epoch_logs(keras: Any, seen: list[Any]) -> Any:
    def note(self: Any, event: str, index: int, logs: Any) -> None:
        seen.append(dict(logs))

    return noting(keras, note, ("on_epoch_end", "on_test_batch_end"))


def call(iterator: Any) -> Any:
    """The iterator is an argument of a function."""
    resource = iterator._iterator_resource

    @tf.function  # type: ignore[untyped-decorator]
    def next_number() -> Any:
        spec = {"output_types": [tf.float32], "output_shapes": [[]]}
        return tf.raw_ops.IteratorGetNext(iterator=resource, **spec)[0]

    return next_number()


TAKES = {
    "same iterator": lambda iterator: iterator.get_next(),
    "other iterator": lambda iterator: numbers(3).get_next(),
    "queue": lambda iterator: tf.queue.FIFOQueue(5, tf.float32, []).dequeue(),
    "call": call,
}


@pytest.mark.parametrize("take", TAKES)
def test_entry_that_takes_data_of_its_own_is_refused(
    subtests: pytest.Subtests, keras: Any, take: str, graph: Any
) -> None:
    """Refused before the first step; the training data is untouched."""
    iterator = numbers(10)
    weight = v1.get_variable("w", initializer=1.0)
    loss = tf.identity(weight * iterator.get_next(), name="loss")
    entry = tf.identity(weight * TAKES[take](iterator), name="entry")
    train = minimize(loss)
    hooks = hb.as_hooks(epoch_logs(keras, []), steps_per_epoch=2, logs={"more": entry})
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
        with subtests.test(str(way_out)):
            assert way_out in str(e.value)


@pytest.mark.parametrize("kinds", [1, 2])
def test_entries_that_steps_fetch_anyway(keras: Any, kinds: int) -> None:
    """Together; or each in its own kind of step, as of generator and discriminator."""
    seen: list[Any] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        first = tf.identity(weight * numbers(8).get_next(), name="loss")
        second = tf.identity(weight * numbers(8).get_next() * 10.0)
        trains = [minimize(each) for each in (first, second)[:kinds]]
        runs = [(train, second) for train in trains] if kinds == 1 else trains
        hooks = hb.as_hooks(
            epoch_logs(keras, seen), steps_per_epoch=4, logs={"second": second}
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            fetched = [session.run(run) for _ in range(8 // kinds) for run in runs]
    if kinds == 1:
        np.testing.assert_array_equal([n for _, n in fetched], np.arange(8) * 10.0)
    means = [1.5, 5.5] if kinds == 1 else [0.5, 2.5]
    assert seen == [{"loss": mean, "second": 10 * mean} for mean in means]


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
