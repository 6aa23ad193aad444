"""A replicated model function gives the results of the model function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from replicated_model import (
    BATCH,
    CLASSES,
    STEPS,
    assert_same_values,
    estimator,
    evaluation_input,
    examples,
    model_fn,
    training_input,
)

import hookbridge as hb
from hookbridge import testing
from hookbridge.jobs.loops.towers.inputs import split_batch

v1 = tf.compat.v1

GPUS = len(tf.config.list_physical_devices("GPU"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The model function trained without towers."""
    folder = tmp_path_factory.mktemp("plain")
    return estimator(model_fn, folder).train(training_input)


def values(job: Any) -> dict[str, Any]:
    return {name: job.get_variable_value(name) for name in job.get_variable_names()}


def test_towers_give_the_weights_of_the_model_function(
    plain: Any, tmp_path: Path
) -> None:
    expected = values(plain)
    assert expected["seen"] == STEPS == expected["global_step"]
    assert "table" in expected
    assert any("ExponentialMoving" in name for name in expected)
    log = testing.EventLog()
    watch = testing.RecordingCallback(log, "watch")
    fetch = testing.RecordingHook(log, "fetch", fetches="logits:0")
    ours = estimator(hb.replicate_model_fn(model_fn, num_towers=4), tmp_path)
    ours.train(training_input, hooks=hb.as_hooks([watch, fetch], steps_per_epoch=2))
    assert_same_values(values(ours), values(plain))
    assert log.counts("watch")["on_train_batch_end"] == STEPS
    assert [value.shape for value in fetch.results()] == [(BATCH // 4, CLASSES)] * STEPS


@pytest.mark.slow
def test_a_batch_each_gives_the_weights_of_one_large_batch(
    plain: Any, tmp_path: Path
) -> None:
    replicated = hb.replicate_model_fn(model_fn, num_towers=4, batches="fetch")
    ours = estimator(replicated, tmp_path).train(evaluation_input(BATCH // 4))
    assert_same_values(values(ours), values(plain))


@pytest.mark.slow
@pytest.mark.parametrize(
    "batches", ["split", pytest.param("fetch", marks=pytest.mark.one_tensorflow)]
)
def test_metrics_and_predictions_are_those_of_the_whole_batch(
    batches: Any, plain: Any
) -> None:
    def only_classes(features: Any, labels: Any, mode: str) -> Any:
        spec = model_fn(features, labels, mode)
        return spec._replace(predictions=spec.predictions["class"], export_outputs=None)

    inputs = evaluation_input(7 if batches == "split" else 3)  # 40 = 5 * 7 + 5
    wanted = plain.evaluate(inputs)
    assert 0 < wanted["accuracy"] < 1
    replicated = hb.replicate_model_fn(model_fn, num_towers=4, batches=batches)
    ours = estimator(replicated, plain.model_dir)
    assert ours.evaluate(inputs) == pytest.approx(wanted, rel=1e-5)
    classes = [p["class"] for p in plain.predict(inputs)]
    assert [p["class"] for p in ours.predict(inputs)] == classes
    single = estimator(
        hb.replicate_model_fn(only_classes, num_towers=2), plain.model_dir
    )
    assert list(single.predict(inputs)) == classes


def test_a_saved_model_of_the_towers_serves_any_batch(
    plain: Any, tmp_path: Path
) -> None:
    job = estimator(hb.replicate_model_fn(model_fn, num_towers=2), plain.model_dir)
    features, _ = examples()

    def receiver() -> Any:
        x = v1.placeholder(tf.float32, [None, 4])
        inputs = {"x": x, "words": v1.placeholder(tf.int64, [None, 3])}
        return hb.estimator.export.ServingInputReceiver(inputs, inputs)

    path = job.export_saved_model(str(tmp_path / "export"), receiver)
    serve = tf.saved_model.load(path.decode()).signatures["serving_default"]
    wanted = [p["logits"] for p in job.predict(evaluation_input(8))]
    for size in (1, 5):
        rows = {name: tf.constant(value[:size]) for name, value in features.items()}
        served = serve(**rows)["logits"]
        np.testing.assert_allclose(served, wanted[:size], rtol=1e-4)


@pytest.mark.parametrize(
    ("batches", "steps"), [("split", STEPS), ("fetch", STEPS // 2)]
)
def test_a_bare_session_loop_takes_a_replicated_model_function(
    batches: Any, steps: int
) -> None:
    """The fifth of five batches is left over if each of two towers fetches one."""
    replicated = hb.replicate_model_fn(model_fn, num_towers=2, batches=batches)
    config = hb.loops.session_config(hb.loops.tower_devices(2))
    losses = []
    with tf.Graph().as_default() as graph:
        v1.train.create_global_step()
        features, labels = v1.data.make_one_shot_iterator(training_input()).get_next()
        spec = replicated(features, labels, "train")
        assert graph.get_operation_by_name("logits").device.endswith("CPU:0")
        assert graph.get_operation_by_name("tower_1/logits").device.endswith("CPU:1")
        (kernel,) = (v for v in v1.trainable_variables() if "kernel" in v.name)
        assert kernel.device == "/device:CPU:0"
        with v1.train.MonitoredTrainingSession(
            hooks=hb.as_hooks(tf.keras.callbacks.EarlyStopping("loss", patience=9),
                              steps_per_epoch=1, logs={"loss": spec.loss}),
            config=config,
        ) as session:  # fmt: skip
            while not session.should_stop():
                losses.append(session.run([spec.loss, spec.train_op])[0])
    assert len(losses) == steps


@pytest.mark.slow
def test_a_keras_model_and_optimizer_are_shared_by_the_towers(
    keras2: Any, tmp_path: Path
) -> None:
    def keras_fn(features: Any, labels: Any, mode: str) -> Any:
        start = keras2.initializers.GlorotUniform(seed=3)
        layers = [  # without names: each call makes new names
            keras2.layers.Dense(6, activation="tanh", kernel_initializer=start),
            keras2.layers.Dense(CLASSES, kernel_initializer=start),
        ]
        model = keras2.Sequential(layers)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=model(features["x"], training=True)
        )
        optimizer = keras2.optimizers.legacy.SGD(0.5)
        optimizer.iterations = v1.train.get_or_create_global_step()
        loss = tf.reduce_mean(losses)
        (update,) = optimizer.get_updates(loss, model.trainable_weights)
        return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=update)

    plain = estimator(keras_fn, tmp_path / "plain").train(training_input)
    replicated = hb.replicate_model_fn(keras_fn, num_towers=4)
    ours = estimator(replicated, tmp_path).train(training_input)
    assert_same_values(values(ours), values(plain))
    layers = [np.shape(value) for value in values(plain).values() if np.ndim(value)]
    assert sorted(layers) == [(3,), (4, 6), (6,), (6, 3)]


def call(function: Any, batch: int = BATCH) -> Any:
    with tf.Graph().as_default():
        v1.train.create_global_step()
        features, labels = examples()
        return function(
            {key: tf.constant(value[:batch]) for key, value in features.items()},
            tf.constant(labels[:batch]),
            "train",
        )


CPU = "/device:CPU:0"
BAD: dict[str, dict[str, Any]] = {
    "model_fn=3": {"model_fn": 3},
    "'mean' or 'sum'": {"loss_reduction": "max"},
    "reduce it in the": {"loss_reduction": v1.losses.Reduction.NONE},
    "'split' or 'fetch'": {"batches": "copy"},
    "one device for each tower": {"devices": [CPU], "num_towers": 2},
    "num_towers=0": {"devices": [CPU], "num_towers": 0},
    "devices='/cpu:0'; expected a list": {"devices": "/cpu:0"},
    "devices=2; expected a list": {"devices": 2},
    "Received the device '/cpu:x'": {"devices": ["/cpu:x"]},
    "Received the device 0 in `devices`": {"devices": [0, 1]},
    "device 'bogus'": {"devices": ["bogus"]},
    "expected one that is here": {"devices": [f"/device:GPU:{GPUS}"]},
}


def no_update(features: Any, labels: Any, mode: str) -> Any:
    spec = model_fn(features, labels, "eval")
    return hb.estimator.EstimatorSpec("train", loss=spec.loss, train_op=tf.no_op())


def test_bad_input_is_refused(subtests: pytest.Subtests) -> None:
    refused = hb.errors.InvalidArgumentError
    for message, arguments in BAD.items():
        with subtests.test(str(message)), pytest.raises(refused, match=message):
            hb.replicate_model_fn(**{"model_fn": model_fn, **arguments})
    for message, function, towers in (
        ("at most 8 towers", model_fn, 9),
        ("batch of 8 examples for 3 towers", model_fn, 3),
        ("applied no gradients", no_update, 2),
        ("expected an `EstimatorSpec`", lambda features, labels, mode: None, 2),
    ):
        with subtests.test(str(message)), pytest.raises(refused, match=message):
            call(hb.replicate_model_fn(function, num_towers=towers))
    with pytest.raises(refused, match=r"ragged input .* `to_tensor`"):
        split_batch(tf.ragged.constant([[1.0], []]), 2)
    with tf.Graph().as_default(), pytest.raises(refused, match="from one `get_next`"):
        batch = v1.data.make_one_shot_iterator(training_input()).get_next()
        features = {**batch[0], "x": batch[0]["x"] * 2}
        replicated = hb.replicate_model_fn(model_fn, num_towers=2, batches="fetch")
        replicated(features, batch[1], "train")


def test_more_towers_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pretends that the machine has two GPUs.
    devices = ["GPU:0", "GPU:1"]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: devices)
    assert hb.loops.tower_devices(2) == ("/device:GPU:0", "/device:GPU:1")
    with pytest.raises(hb.errors.InvalidArgumentError, match="at most 2"):
        hb.loops.tower_devices(3)
    cpus = ["/device:CPU:0", "/device:CPU:1", "/device:CPU:2"]
    assert hb.loops.tower_devices(3, cpus) == tuple(cpus)
