"""N towers give the results of one tower."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import testing
from hookbridge.loops import TowerLoop, TowerSpec

v1 = tf.compat.v1

BATCH, FEATURES, CLASSES, STEPS = 8, 5, 3, 6


def dense_data() -> Any:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(BATCH * STEPS, FEATURES)).astype(np.float32)
    y = rng.integers(0, CLASSES, size=BATCH * STEPS)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=True)


def token_data() -> Any:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 11, size=(BATCH * STEPS, 4))  # rows repeat across towers
    y = rng.integers(0, CLASSES, size=BATCH * STEPS)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=True)


def layer(x: Any, units: int, name: str | None) -> Any:
    with v1.variable_scope(name, default_name="dense"):
        kernel = v1.get_variable(
            "kernel",
            [x.shape[-1], units],
            initializer=v1.glorot_uniform_initializer(seed=7),
        )
        return tf.matmul(x, kernel)


def loss_and_metrics(logits: Any, labels: Any) -> TowerSpec:
    hits = tf.equal(tf.argmax(logits, 1), tf.cast(labels, tf.int64))
    return TowerSpec(
        loss=tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        ),
        metrics={"accuracy": tf.reduce_mean(tf.cast(hits, tf.float32))},
    )


def dense_model(features: Any, labels: Any, mode: str) -> TowerSpec:
    hidden = tf.nn.relu(layer(features, 4, "hidden"), name="hidden/Relu")
    return loss_and_metrics(layer(hidden, CLASSES, "logits"), labels)


def unnamed_layers_model(features: Any, labels: Any, mode: str) -> TowerSpec:
    hidden = tf.nn.relu(layer(features, 4, None))
    return loss_and_metrics(layer(hidden, CLASSES, None), labels)


def embedding_model(features: Any, labels: Any, mode: str) -> TowerSpec:
    table = v1.get_variable(
        "embedding", [11, 6], initializer=v1.glorot_uniform_initializer(seed=8)
    )
    vectors = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)
    return loss_and_metrics(layer(vectors, CLASSES, "logits"), labels)


def regularised_model(features: Any, labels: Any, mode: str) -> TowerSpec:
    with v1.variable_scope("l", regularizer=lambda w: 0.1 * tf.reduce_sum(w * w)):
        logits = layer(features, CLASSES, "logits")
    v1.losses.add_loss(loss_and_metrics(logits, labels).loss)
    return TowerSpec(loss=v1.losses.get_total_loss())


def tf_variables_model(features: Any, labels: Any, mode: str) -> TowerSpec:
    rng = np.random.default_rng(5)
    kernel = tf.Variable(rng.normal(size=(FEATURES, CLASSES)).astype(np.float32))
    bias = v1.get_variable("bias", [CLASSES], initializer=v1.zeros_initializer())
    scale = tf.Variable(1.0, name="scale")
    return loss_and_metrics((tf.matmul(features, kernel) + bias) * scale, labels)


# Each model with an optimizer.
MODELS = {
    "tf_variables": (tf_variables_model, dense_data, v1.train.AdamOptimizer),
    "dense": (
        dense_model,
        dense_data,
        lambda rate: v1.train.MomentumOptimizer(rate, momentum=0.9),
    ),
    "unnamed_layers": (
        unnamed_layers_model,
        dense_data,
        v1.train.GradientDescentOptimizer,
    ),
    "indexed_slices": (embedding_model, token_data, v1.train.AdamOptimizer),
    "collections": (regularised_model, dense_data, v1.train.AdamOptimizer),
}


def record(*names: str) -> testing.RecordingHook:
    """A hook that fetches tensors by name in each step, as a user's does."""
    return testing.RecordingHook(testing.EventLog(), fetches={n: n for n in names})


def loop(model_fn: Any, **config: Any) -> TowerLoop:
    config = {
        "optimizer": v1.train.GradientDescentOptimizer,
        "learning_rate": 0.1,
        **config,
    }
    return TowerLoop(model_fn, **config)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_n_towers_give_the_weights_of_one(model: str) -> None:
    model_fn, data, optimizer = MODELS[model]
    one, four = (
        loop(model_fn, optimizer=optimizer, num_towers=towers).train(data)
        for towers in (1, 4)
    )
    initial = loop(model_fn, learning_rate=1e-30).train(data).variables
    moved = [
        np.abs(value - initial[name]).max()
        for name, value in one.variables.items()
        if name in initial and name not in ("global_step", "optimizer/learning_rate")
    ]
    assert max(moved) > 1e-2  # it has trained
    assert four.global_step == STEPS
    assert four.variables.keys() == one.variables.keys()
    for name, value in one.variables.items():
        np.testing.assert_allclose(
            four.variables[name], value, rtol=1e-4, atol=1e-6, err_msg=name
        )


def test_names_mean_the_whole_batch_and_the_first_tower() -> None:
    names = ("loss:0", "accuracy:0", "learning_rate:0", "hidden/Relu:0")
    recorded = {}
    for towers in (1, 2):
        recorded[towers] = record(*names)
        loop(dense_model, num_towers=towers).train(
            dense_data, guests=[recorded[towers]]
        )
    for one, two in zip(recorded[1].results(), recorded[2].results(), strict=True):
        for name in ("loss:0", "accuracy:0", "learning_rate:0"):
            np.testing.assert_allclose(one[name], two[name], rtol=1e-5)
        assert one["hidden/Relu:0"].shape == (BATCH, 4)
        assert two["hidden/Relu:0"].shape == (BATCH // 2, 4)
        np.testing.assert_allclose(
            one["hidden/Relu:0"][: BATCH // 2], two["hidden/Relu:0"], rtol=1e-4
        )


def test_each_tower_is_on_its_own_device_and_variables_on_the_first_cpu() -> None:
    graphs: list[Any] = []
    devices: list[str] = []

    class Look(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            graphs.append(v1.get_default_graph())

        def after_create_session(self, session: Any, coord: Any) -> None:
            devices.extend(d.name for d in session.list_devices())

    loop(dense_model, num_towers=3).train(
        lambda: dense_data().unbatch().batch(6, drop_remainder=True), guests=Look()
    )
    assert sum("device:CPU" in name for name in devices) == 3
    ops = {op.name: op for op in graphs[0].get_operations()}
    for prefix, device in (("", 0), ("tower_1/", 1), ("tower_2/", 2)):
        assert ops[f"{prefix}hidden/Relu"].device.endswith(f"CPU:{device}")
    kinds = {op.device for op in ops.values() if op.type == "VarHandleOp"}
    assert kinds == {"/device:CPU:0"}


def test_update_ops_run_once_for_each_step() -> None:
    def model(features: Any, labels: Any, mode: str) -> TowerSpec:
        seen = v1.get_variable(
            "seen", [], initializer=v1.zeros_initializer(), trainable=False
        )
        # It needs the batch, as batch normalisation does, so the run that finds the end
        # of the data must not count.
        one = tf.cast(tf.reduce_sum(features) > -1e9, tf.float32)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, seen.assign_add(one))
        return dense_model(features, labels, mode)

    result = loop(model, num_towers=4).train(dense_data)
    assert result.variables["seen"] == STEPS


def test_the_step_without_data_updates_nothing() -> None:
    # Adam changes its moments even without gradients: one more update would show.
    adam = {"optimizer": v1.train.AdamOptimizer, "num_towers": 2}
    by_data = loop(embedding_model, **adam).train(token_data).variables
    by_steps = loop(embedding_model, **adam).train(
        lambda: token_data().repeat(), max_steps=STEPS
    )
    for name, value in by_steps.variables.items():
        np.testing.assert_array_equal(by_data[name], value, err_msg=name)


def test_a_hook_feeds_the_learning_rate() -> None:
    feed = testing.RecordingHook(
        testing.EventLog(), feed_dict={"learning_rate:0": np.float32(0.0)}
    )
    fed = loop(dense_model, num_towers=2).train(dense_data, guests=[feed])
    initial = loop(dense_model, learning_rate=1e-30).train(dense_data)
    for name in ("hidden/kernel", "logits/kernel"):
        np.testing.assert_allclose(fed.variables[name], initial.variables[name])


def test_a_loss_named_loss_does_not_take_the_place_of_the_mean() -> None:
    def model(features: Any, labels: Any, mode: str) -> TowerSpec:
        spec = dense_model(features, labels, mode)
        return TowerSpec(loss=tf.identity(spec.loss, name="loss"))

    ours, plain = record("loss:0"), record("loss:0")
    loop(model, num_towers=2).train(dense_data, guests=ours)
    loop(dense_model, num_towers=2).train(dense_data, guests=plain)
    assert ours.results() == plain.results()


def test_a_metric_whose_name_is_taken_is_refused() -> None:
    def model(features: Any, labels: Any, mode: str) -> TowerSpec:
        spec = dense_model(features, labels, mode)
        hits = tf.identity(spec.metrics["accuracy"], name="accuracy")
        return TowerSpec(loss=spec.loss, metrics={"accuracy": hits})

    loop(model).train(dense_data)
    with pytest.raises(hb.errors.InvalidArgumentError, match="tower_accuracy"):
        loop(model, num_towers=2).train(dense_data)


def test_a_batch_that_does_not_divide_is_refused_before_training() -> None:
    steps = record("loss:0")
    with pytest.raises(
        hb.errors.InvalidArgumentError, match="batch of 8 examples for 3 towers"
    ):
        loop(dense_model, num_towers=3).train(dense_data, guests=steps)
    assert steps.results() == []


def test_a_last_batch_that_does_not_divide_ends_the_run() -> None:
    def data() -> Any:
        return dense_data().unbatch().take(45).batch(10)  # the last batch has 5

    with pytest.raises(tf.errors.InvalidArgumentError, match="drop_remainder=True"):
        loop(dense_model, num_towers=2).train(data)


def test_a_schedule_is_read_through_the_learning_rate() -> None:
    seen = record("learning_rate:0")
    loop(
        dense_model, learning_rate=lambda step: 0.5 / (1.0 + tf.cast(step, tf.float32))
    ).train(dense_data, guests=seen, max_steps=1)
    np.testing.assert_allclose(seen.results()[0]["learning_rate:0"], 0.5)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [((1, 2), "`scale` that tower 0 did not make"), ((2, 1), "Tower 1 did not make")],
)
def test_towers_that_make_different_variables_are_refused(
    numbers: tuple[int, int], message: str
) -> None:
    wanted = iter(numbers)

    def model(features: Any, labels: Any, mode: str) -> TowerSpec:
        scales = [tf.Variable(1.0, name="scale") for _ in range(next(wanted))]
        return TowerSpec(loss=dense_model(features, labels, mode).loss * scales[0])

    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        loop(model, num_towers=2).train(dense_data)
