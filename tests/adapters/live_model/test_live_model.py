"""What a callback reads and sets through `self.model` in a session loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, STEPS, GraphValidation, build, feeds, session_loop

import hookbridge as hb

v1 = tf.compat.v1


def test_weights_as_variables(keras: Any) -> None:
    def body(model: Any, epoch: int) -> None:
        kernel, bias = model.trainable_weights
        assert isinstance(kernel, tf.Variable)
        assert kernel.name == "dense/kernel:0"
        assert model.non_trainable_weights == []
        assert model.count_params() == 3
        np.testing.assert_array_equal(kernel.numpy(), model.get_weights()[0])
        (layer,) = model.layers
        assert layer.name == "dense"
        assert model.get_layer("dense").get_weights()[1] == bias.numpy()
        # Eager ops work on it, and an assignment reaches the session.
        assert float(tf.reduce_sum(tf.abs(kernel))) > 0
        kernel.assign(KERNEL * (epoch + 1))
        del layer

    seen: list[Any] = []

    class Check(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch:
                seen.append(self.model.get_weights()[0])

    class Body(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            body(self.model, epoch)

    session_loop([Body(), Check()], epochs=3, validate=False)
    np.testing.assert_array_equal(seen[0], KERNEL)
    np.testing.assert_array_equal(seen[1], KERNEL * 2)


def test_variables_kept_from_before_are_up_to_date(keras: Any) -> None:
    seen: list[Any] = []

    class Keeps(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.kernel = self.model.weights[0]
            self.iterations = self.model.optimizer.iterations

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append((self.kernel.numpy(), int(self.iterations.numpy())))
            np.testing.assert_array_equal(seen[-1][0], self.model.get_weights()[0])

    session_loop([Keeps()], epochs=3, validate=False)
    assert [s[1] for s in seen] == [STEPS, 2 * STEPS, 3 * STEPS]


def test_batch_norm_averages_are_weights(keras: Any) -> None:
    shapes: list[Any] = []

    class Look(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            shapes.append([w.shape for w in self.model.get_weights()])
            shapes.append([w.name for w in self.model.non_trainable_weights])

    with tf.Graph().as_default():
        net = build()
        mean = v1.get_variable("norm/moving_mean", [2], trainable=False)
        other = v1.get_variable("other", [5], trainable=False)
        v1.add_to_collection(
            v1.GraphKeys.UPDATE_OPS, v1.assign(mean, tf.reduce_mean(net.x, 0) + mean)
        )
        hooks = hb.as_hooks(Look())
        with v1.train.MonitoredTrainingSession(hooks=hooks):
            pass
        del other
    assert shapes == [[(2, 1), (1,), (2,)], ["norm/moving_mean:0"]]


def test_evaluate_runs_the_validation(keras: Any) -> None:
    results: list[Any] = []
    events: list[str] = []

    class Evaluates(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            results.append((self.model.evaluate(return_dict=True), dict(logs)))
            results.append(self.model.evaluate())

        def on_test_begin(self, logs: Any = None) -> None:
            events.append("test")

    session_loop([Evaluates()], epochs=1)
    values, logs = results[0]
    assert values == {k[4:]: v for k, v in logs.items() if k.startswith("val_")}
    assert results[1] == list(values.values())
    assert len(events) == 3


def test_summaries_and_eager_code_in_a_callback(keras: Any, tmp_path: Any) -> None:
    class Writes(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            assert tf.executing_eagerly()
            self.writer = tf.summary.create_file_writer(str(tmp_path))
            self.double = tf.function(lambda x: 2 * x)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            with self.writer.as_default():
                tf.summary.scalar(
                    "double",
                    self.double(tf.constant(logs["loss"])),
                    step=self.model.optimizer.iterations,
                )

        def on_train_end(self, logs: Any = None) -> None:
            self.writer.close()

    session_loop([Writes()], epochs=2, validate=False)
    (file,) = tmp_path.iterdir()
    steps = [
        e.step
        for e in v1.train.summary_iterator(str(file))
        if any(v.tag == "double" for v in e.summary.value)
    ]
    assert steps == list(range(1, 2 * STEPS + 1))


def test_logs_from_every_kind_of_source(keras: Any, keras2: Any) -> None:
    """A tensor, a name, a streaming metric, a Keras metric; `size` weights means."""
    logs_seen: list[Any] = []

    class Logs(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs_seen.append(dict(logs))

    with tf.Graph().as_default():
        net = build(0.0)
        absolute = tf.abs(net.x @ net.kernel + net.bias - net.y)
        metric = keras2.metrics.Mean(name="km")
        metric.update_state(absolute)
        hooks = hb.as_hooks(
            Logs(),
            steps_per_epoch=2,
            epochs=2,
            logs={
                "tensor": net.mae,
                "name": "mae",
                "streaming": v1.metrics.mean(absolute, name="stream"),
                "keras": metric,
                "size": tf.shape(net.x)[0],
            },
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            step = 0
            while not session.should_stop():
                feed = feeds(net, step)
                if step % 2:  # a short last batch
                    feed = {k: v[:1] for k, v in feed.items()}
                session.run(net.train_op, feed)
                step += 1
    assert len(logs_seen) == 2
    for logs in logs_seen:
        assert list(logs) == ["loss", "tensor", "name", "streaming", "keras"]
        assert all(isinstance(value, float) for value in logs.values())
        for key in ("name", "streaming", "keras"):
            assert logs[key] == pytest.approx(logs["tensor"], rel=1e-5), key
    # Without a reset at its begin, the second epoch would have the mean of both.
    assert logs_seen[0]["streaming"] != pytest.approx(logs_seen[1]["streaming"])


def test_metric_is_found_by_the_name_that_is_monitored(keras: Any) -> None:
    stop = keras.callbacks.EarlyStopping("error", mode="max", patience=1)
    with tf.Graph().as_default():
        net = build()
        v1.metrics.mean(net.mae, name="error")
        history = keras.callbacks.History()
        hooks = hb.as_hooks([stop, history], steps_per_epoch=STEPS)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            step = 0
            while not session.should_stop():
                session.run(net.train_op, feeds(net, step))
                step += 1
    assert step == 2 * STEPS
    assert list(history.history) == ["loss", "error"]


def test_validation_object_that_builds_its_ops(keras: Any) -> None:
    with tf.Graph().as_default():
        net = build()

        class Builds(GraphValidation):
            def begin(self) -> None:
                self.double = 2 * net.loss

            def run(self, session: Any, report: Any) -> Any:
                value = session.run(self.double, feeds(net, 0))
                return {"double": value}

        history = keras.callbacks.History()
        hooks = hb.as_hooks(
            history, steps_per_epoch=1, epochs=1, validation=Builds(net)
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(net.train_op, feeds(net, 0))
    assert list(history.history) == ["loss", "val_double"]


def test_mean_of_many_is_the_mean_of_one_after_the_other() -> None:
    from hookbridge.adapters.session_loop.values import RunningMean

    random = np.random.RandomState(0)
    numbers, sizes = random.randn(1000) * 1e3, random.randint(1, 9, 1000)
    one, many = RunningMean(), RunningMean()
    for number, size in zip(numbers, sizes, strict=True):
        last = one.update(number, size)
    many.update_all(numbers[:400], sizes[:400])
    assert many.update_all(numbers[400:], sizes[400:]) == last
    assert many.state() == one.state()


@pytest.mark.parametrize("name", ["acc", "accuracy"])
def test_direction_of_accuracy(keras: Any, name: str) -> None:
    """`compile` of Keras takes both names for the same metric."""
    stop = keras.callbacks.EarlyStopping(name, patience=1)
    loop = session_loop([stop], epochs=5, logs={name: "mae:0"}, validate=False)
    # The mean error falls, which is worse for an accuracy.
    assert loop.steps == 2 * STEPS


def test_metric_whose_class_of_keras_needs_arguments(keras: Any) -> None:
    """Its direction is not known; that of the others is."""
    stop = keras.callbacks.EarlyStopping("mae", patience=1)
    logs = {"mae": "mae:0", "mean_io_u": "mae:0", "precision_at_recall": "mae:0"}
    loop = session_loop([stop], epochs=3, logs=logs, validate=False)
    assert loop.steps == 3 * STEPS
