"""What a callback reads and sets through `self.model` in a session loop."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, STEPS, build, feeds, fit, session_loop, until_stop
from callback_recorder import callback_of

import hookbridge as hb

ONE_KERAS = True

v1 = tf.compat.v1


def test_weights_as_variables(keras: Any) -> None:
    def body(model: Any, epoch: int) -> None:
        kernel, bias = model.trainable_weights
        assert isinstance(kernel, tf.Variable)
        assert kernel.name == "dense/kernel:0"
        assert model.non_trainable_weights == []
        assert model.count_params() == 3
        np.testing.assert_array_equal(kernel.numpy(), model.get_weights()[0])
        assert [layer.name for layer in model.layers] == ["dense"]
        assert model.get_layer("dense").get_weights()[1] == bias.numpy()
        # Eager ops work on it, and an assignment reaches the session.
        assert float(tf.reduce_sum(tf.abs(kernel))) > 0
        kernel.assign(KERNEL * (epoch + 1))

    seen: list[Any] = []
    guest = callback_of(
        keras,
        on_epoch_begin=lambda self, *_, **__: seen.append(self.model.get_weights()[0]),
        on_epoch_end=lambda self, epoch, logs: body(self.model, epoch),
    )
    session_loop([guest], epochs=3, validate=False)
    np.testing.assert_array_equal(seen[1], KERNEL)
    np.testing.assert_array_equal(seen[2], KERNEL * 2)


def test_batch_norm_averages_are_weights(keras: Any) -> None:
    shapes: list[Any] = []

    def look(self: Any, logs: Any) -> None:
        shapes.append([w.shape for w in self.model.get_weights()])
        shapes.append([w.name for w in self.model.non_trainable_weights])

    with tf.Graph().as_default():
        net = build()
        mean = v1.get_variable("norm/moving_mean", [2], trainable=False)
        v1.get_variable("other", [5], trainable=False)
        update = v1.assign(mean, tf.reduce_mean(net.x, 0) + mean)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
        hooks = hb.as_hooks(callback_of(keras, on_train_begin=look))
        with v1.train.MonitoredTrainingSession(hooks=hooks):
            pass
    assert shapes == [[(2, 1), (1,), (2,)], ["norm/moving_mean:0"]]


def test_evaluate_runs_the_validation(keras: Any) -> None:
    results: list[Any] = []
    events: list[str] = []
    counted: list[Any] = []

    def evaluate(self: Any, epoch: int, logs: Any) -> None:
        model = self.model
        strategy = model.distribute_strategy
        assert strategy.num_replicas_in_sync == 1
        assert strategy.extended.should_checkpoint
        assert model.metrics_names == ["loss", "mae"]
        counters = (model._train_counter, model._test_counter)
        counted.append([int(counter.numpy()) for counter in counters])
        results.append((model.evaluate(return_dict=True), dict(logs)))
        results.append(model.evaluate())

    evaluates = callback_of(
        keras,
        on_epoch_end=evaluate,
        on_test_begin=lambda self, logs: events.append("test"),
    )
    session_loop([evaluates], epochs=2)
    values, logs = results[0]
    assert values == {k[4:]: v for k, v in logs.items() if k.startswith("val_")}
    assert results[1] == list(values.values())
    assert len(events) == 6
    # As Keras does: the batches of the whole training, and of the last validation.
    assert counted == [[STEPS, 2], [2 * STEPS, 2]]


def test_logs_from_every_kind_of_source(keras: Any, keras2: Any) -> None:
    """A tensor, a name, a streaming metric, a Keras metric; `size` weights means."""
    logs_seen: list[Any] = []
    guest = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs_seen.append(dict(logs))
    )
    with tf.Graph().as_default():
        net = build(0.0)
        absolute = tf.abs(net.x @ net.kernel + net.bias - net.y)
        metric = keras2.metrics.Mean(name="km")
        metric.update_state(absolute)
        hooks = hb.as_hooks(
            guest,
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

        def feed(step: int) -> Any:
            most = 1 if step % 2 else None  # a short last batch
            return {k: v[:most] for k, v in feeds(net, step).items()}

        until_stop(hooks, net.train_op, feed)
    assert len(logs_seen) == 2
    for logs in logs_seen:
        assert list(logs) == ["loss", "tensor", "name", "streaming", "keras"]
        assert all(isinstance(value, float) for value in logs.values())
        for key in ("name", "streaming", "keras"):
            assert logs[key] == pytest.approx(logs["tensor"], rel=1e-5), key
    # Without a reset at its begin, the second epoch would have the mean of both.
    assert logs_seen[0]["streaming"] != pytest.approx(logs_seen[1]["streaming"])


@pytest.mark.parametrize(
    ("monitor", "others", "epochs"),
    [
        # A name that `compile` of Keras takes for the accuracy. The mean error falls,
        # which is worse for an accuracy.
        ("acc", (), 2),
        # Their classes need arguments: the direction of the others is known.
        ("mae", ("mean_io_u", "precision_at_recall"), 3),
        # A streaming metric of the graph, which is in no `logs=`.
        ("error", None, 2),
    ],
)
def test_direction_of_a_metric(
    keras: Any, monitor: str, others: tuple[str, ...] | None, epochs: int
) -> None:
    mode = "max" if others is None else "auto"
    stop = keras.callbacks.EarlyStopping(monitor, mode=mode, patience=1)
    logs = None if others is None else dict.fromkeys((monitor, *others), "mae:0")

    def optimizer(rate: float) -> Any:
        mae = v1.get_default_graph().get_tensor_by_name("mae:0")
        v1.metrics.mean(mae, name="error")
        return v1.train.GradientDescentOptimizer(rate)

    loop = session_loop(
        [stop], epochs=3, optimizer=optimizer, logs=logs, validate=False
    )
    assert loop.steps == epochs * STEPS
    assert list(loop.history) == ["loss", monitor, *(others or ())]


@pytest.mark.parametrize("event", ["on_train_batch_begin", "on_train_batch_end"])
def test_metrics_reset_in_each_batch(keras: Any, event: str) -> None:
    seen: list[Any] = []
    looks = callback_of(
        keras, on_train_batch_end=lambda _, batch, logs: seen.append([*logs.values()])
    )
    resets = callback_of(
        keras, **{event: lambda self, batch, logs: self.model.reset_metrics()}
    )
    loops = [
        run([looks, resets], validate=False, epochs=2)
        for run in (functools.partial(fit, keras), session_loop)
    ]
    np.testing.assert_allclose(
        np.sort(seen[6:], 1), np.sort([x[:2] for x in seen[:6]], 1), rtol=2e-5
    )
    # As in Keras 3, the logs of an epoch are those of its last batch. Keras 2 reads the
    # metrics once more: they are 0 if the end of that batch reset them.
    assert loops[1].history["loss"] == pytest.approx([seen[8][0], seen[11][0]])


def test_states_of_recurrent_layers(keras: Any, keras2: Any) -> None:
    states: list[float] = []

    def reset(self: Any, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            self.model.reset_states()

    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        model = keras2.Sequential(
            [keras2.layers.SimpleRNN(1, stateful=True, batch_input_shape=(1, 1, 1))]
        )
        loss = tf.reduce_mean(model(tf.ones([1, 1, 1])), name="loss")
        # The train op does not run the update of the state.
        train_op = v1.train.GradientDescentOptimizer(0.0).minimize(loss, step)
        state = model.layers[0].states[0]
        initializer = state.initializer
        guest = callback_of(keras, on_epoch_begin=reset)
        hooks = hb.as_hooks(guest, steps_per_epoch=1, model=model)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            raw = session._tf_sess()
            session.run(train_op)
            raw.run(initializer, {initializer.inputs[1]: [[5.0]]})
            states.append(raw.run(state).item())
            session.run(train_op)
            states.append(raw.run(state).item())
    assert states == [5, 0]
