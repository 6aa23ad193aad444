"""Checkpoints cross between loops: from v1 graphs and Estimators to Keras, and back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hook_loops
import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

v1: Any = tf.compat.v1
Training = Callable[[str], Any]

# v1's optimizer, and the same of Keras.
OPTIMIZERS: dict[str, tuple[Any, Any]] = {
    "frozen": (lambda: v1.train.GradientDescentOptimizer(0.0), None),
    "sgd": (lambda: v1.train.GradientDescentOptimizer(0.1), lambda k: k.SGD(0.1)),
    "momentum": (
        lambda: v1.train.MomentumOptimizer(0.1, 0.9),
        lambda k: k.SGD(0.1, momentum=0.9),
    ),
    "adam": (
        lambda: v1.train.AdamOptimizer(0.05, epsilon=1e-7),
        lambda k: k.Adam(0.05, epsilon=1e-7),
    ),
    "adagrad": (
        lambda: v1.train.AdagradOptimizer(0.1, 0.1),
        lambda k: k.Adagrad(0.1, initial_accumulator_value=0.1),
    ),
    "rmsprop": (
        lambda: v1.train.RMSPropOptimizer(0.01, 0.9, epsilon=1e-7),
        lambda k: k.RMSprop(0.01, rho=0.9, epsilon=1e-7),
    ),
}


def train_v1(kind: str, directory: str, steps: int) -> dict[str, Any]:
    """Trains (further) in a v1 graph; returns the weights."""
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensor_slices((hook_loops.X, hook_loops.Y))
        x, y = v1.data.make_one_shot_iterator(data.batch(32).repeat()).get_next()
        v1.train.create_global_step()
        spec = model_fn(x, y, "train", {"kind": kind})
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=directory,
            save_checkpoint_steps=1000,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=0,
        ) as session:
            for _ in range(steps):
                session.run(spec.train_op)
            return dict(session.run({v.op.name: v for v in v1.trainable_variables()}))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Of an optimizer: the checkpoint and weights of step 5, those of step 9."""

    @functools.cache
    def train(kind: str) -> Any:
        folder = str(tmp_path_factory.mktemp(kind))
        weights = train_v1(kind, folder, 5)
        return f"{folder}/model.ckpt-5", weights, train_v1(kind, folder, 4)

    return train


def keras_model(keras: Any, kind: str) -> Any:
    model = hook_loops.keras_model(keras)
    model.compile(
        OPTIMIZERS[kind][1](keras.optimizers),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam", "adagrad", "rmsprop"])
def test_training_goes_on_in_keras_as_it_would_in_the_graph(
    keras: Any, kind: str, trained: Training
) -> None:
    checkpoint, weights, later = trained(kind)
    model = keras_model(keras, kind)
    report = hb.checkpoints.restore(model, checkpoint)
    for found, (name, value) in zip(model.get_weights(), weights.items(), strict=True):
        np.testing.assert_array_equal(found, value)
        assert report.restored[name] == name
    assert int(np.asarray(model.optimizer.iterations)) == 5
    assert not report.mismatched
    # v1's RMSProp always stores a momentum; Keras stores one only if it uses momentum.
    assert all(name.endswith("/RMSProp_1") for name in report.unused)
    # If the slots were restored too, the next steps give the same weights.
    model.fit(
        hook_loops.X, hook_loops.Y, batch_size=32, epochs=4, verbose=0, shuffle=False
    )
    for found, value in zip(model.get_weights(), later.values(), strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-3, atol=2e-4)


def test_what_does_not_fit_is_an_error_that_lists_it(
    keras: Any, trained: Training
) -> None:
    folder = str(Path(trained("sgd")[0]).parent)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="other")])
    before = model.get_weights()
    with pytest.raises(hb.errors.CheckpointMismatchError, match="`other/kernel`"):
        hb.checkpoints.restore(model, folder)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    report = hb.checkpoints.restore(model, folder, must_restore_weights=False)
    assert set(report.kept) == {"other/kernel", "other/bias"}
    assert "hidden/kernel" in report.unused
    assert "kept as they were" in str(report)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(9, name="hidden")])
    with pytest.raises(hb.errors.CheckpointMismatchError, match=r"\[4, 8\]"):
        hb.checkpoints.restore(model, folder)
    unbuilt = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(hb.errors.InvalidArgumentError, match="not built"):
        hb.checkpoints.restore(unbuilt, folder)


def test_names_map_what_is_called_otherwise(keras: Any, trained: Training) -> None:
    checkpoint, weights, _ = trained("adam")
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(8, activation="relu", name="first"),
            keras.layers.Dense(3, name="out"),
        ]
    )
    model.compile("adam", "mse")
    names = {"first/kernel": "hidden/kernel", "first/bias": "hidden/bias"}
    report = hb.checkpoints.restore(model, checkpoint, names=names)
    np.testing.assert_array_equal(model.get_weights()[0], weights["hidden/kernel"])
    assert "hidden/kernel/Adam" in report.restored.values()
    with pytest.raises(hb.errors.InvalidArgumentError, match="nosuch"):
        hb.checkpoints.restore(model, checkpoint, names={"first/kernel": "nosuch"})


@pytest.mark.parametrize("scaled", [False, True])
def test_slots_follow_the_weights_that_names_map(
    keras: Any, scaled: bool, tmp_path: Path
) -> None:
    """Also where each layer has the number that another one has in the checkpoint."""

    def make(*numbers: int) -> Any:
        keras.utils.set_random_seed(1)
        layers = [keras.layers.Dense(2, name=f"dense_{n}") for n in numbers]
        model = keras.Sequential([keras.Input((2,)), *layers])
        optimizer: Any = keras.optimizers.Adam(0.1)
        if scaled:
            is_keras2 = str(keras.__version__).startswith("2")
            home = keras.mixed_precision if is_keras2 else keras.optimizers
            optimizer = home.LossScaleOptimizer(optimizer)
        model.compile(optimizer, "mse")
        return model

    def fit(model: Any, guests: list[Any]) -> Any:
        options = {"batch_size": 2, "verbose": 0, "shuffle": False}
        model.fit(x, y, callbacks=hb.as_callbacks(guests), **options)
        return model

    x = np.random.RandomState(0).randn(8, 2).astype("float32")
    y = x @ np.array([[1.0, -2.0], [0.5, 3.0]], "float32")
    folder = str(tmp_path)
    whole = fit(make(1, 2), [v1.train.CheckpointSaverHook(folder, save_steps=99)])
    swapped = make(2, 1)
    names = {"dense_2": "dense_1", "dense_1": "dense_2"}
    pairs = {
        f"{ours}/{part}": f"{theirs}/{part}"
        for ours, theirs in names.items()
        for part in ("kernel", "bias")
    }
    hb.checkpoints.restore(swapped, folder, names=pairs)
    for model in (swapped, whole):
        fit(model, [])
    for ours, theirs in zip(swapped.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)


def test_every_weight_must_fit_trainable_or_not(keras: Any, tmp_path: Path) -> None:
    sizes = {"gamma": 4, "beta": 4, "moving_mean": 5, "moving_variance": 4}
    with tf.Graph().as_default(), v1.Session() as session:
        for name, size in sizes.items():
            v1.get_variable(f"norm/{name}", [size])
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    layer = keras.layers.BatchNormalization(name="norm")
    model = keras.Sequential([keras.Input((4,)), layer])
    before = model.get_weights()
    with pytest.raises(hb.errors.CheckpointMismatchError, match="fits `norm/moving_m"):
        hb.checkpoints.restore(model, path)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    report = hb.checkpoints.restore(model, path, must_restore_weights=False)
    assert list(report.mismatched) == ["norm/moving_mean"]
    assert len(report.restored) == 3


def model_fn(features: Any, labels: Any, mode: str, params: Mapping[str, Any]) -> Any:
    estimator = hb.estimator
    hidden = v1.get_variable("hidden/kernel", [4, 8], use_resource=True)
    hidden_bias = v1.get_variable("hidden/bias", [8], use_resource=True)
    out = v1.get_variable("out/kernel", [8, 3], use_resource=True)
    out_bias = v1.get_variable("out/bias", [3], use_resource=True)
    logits = tf.nn.relu(features @ hidden + hidden_bias) @ out + out_bias
    if mode == "infer":
        return estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train_op = OPTIMIZERS[params["kind"]][0]().minimize(
        loss, global_step=v1.train.get_global_step()
    )
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn() -> Any:
    return (
        tf.data.Dataset.from_tensor_slices((hook_loops.X, hook_loops.Y))
        .batch(8)
        .repeat()
    )


def logits_of(estimator: Any) -> Any:
    found = estimator.predict(
        lambda: tf.data.Dataset.from_tensor_slices(hook_loops.X).batch(8)
    )
    return np.stack([row["logits"] for row in found])


def test_an_estimators_checkpoint_restores_into_keras(
    keras: Any, tmp_path: Path
) -> None:
    estimator = hb.estimator.Estimator(model_fn, str(tmp_path), params={"kind": "adam"})
    estimator.train(input_fn, steps=6)
    model = keras_model(keras, "adam")
    report = hb.checkpoints.restore(model, estimator.latest_checkpoint())
    assert not report.kept or all("learning_rate" in name for name in report.kept)
    np.testing.assert_allclose(
        model.predict(hook_loops.X, verbose=0),
        logits_of(estimator),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.slow
def test_an_estimator_starts_from_a_checkpoint_of_fit(
    keras: Any, tmp_path: Path
) -> None:
    model = keras_model(keras, "adam")
    saver = v1.train.CheckpointSaverHook(str(tmp_path / "fit"), save_steps=100)
    hook_loops.in_fit(keras, [saver], model=model)
    estimator = hb.estimator.Estimator(
        model_fn,
        str(tmp_path / "estimator"),
        params={"kind": "frozen"},
        warm_start_from=tf.train.latest_checkpoint(str(tmp_path / "fit")),
    )
    estimator.train(input_fn, steps=1)
    np.testing.assert_allclose(
        logits_of(estimator),
        model.predict(hook_loops.X, verbose=0),
        rtol=1e-4,
        atol=1e-5,
    )
    reader = tf.train.load_checkpoint(str(tmp_path / "estimator"))
    assert reader.get_tensor("global_step") == 1


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_a_later_model_of_the_process_takes_every_slot(
    keras: Any, several: bool, tmp_path: Path
) -> None:
    """Keras 3 names each new optimizer and unnamed model with a new number."""
    several = several and hasattr(keras.optimizers, "MultiOptimizer")

    def make() -> Any:
        layers = [keras.Input((2,)), keras.layers.Dense(1, name="out")]
        model = keras.Sequential(layers)
        optimizer: Any = "adam"
        if several:
            first = model.trainable_variables[0]
            two = [keras.optimizers.Adam(rate) for rate in (0.1, 0.2)]
            optimizer = keras.optimizers.MultiOptimizer(
                lambda variable: two[0] if variable is first else two[1]
            )
        model.compile(optimizer, "mse")
        return model

    saver = tf.compat.v1.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    x, y = np.ones((4, 2), "f"), np.ones((4, 1), "f")
    model, later = make(), make()
    model.fit(x, y, batch_size=2, verbose=0, callbacks=hb.as_callbacks(saver))
    report = hb.checkpoints.restore(later, str(tmp_path))
    assert not report.kept and not report.mismatched
    if several:
        pairs = zip(later.optimizer.variables, model.optimizer.variables, strict=True)
        for ours, theirs in pairs:
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_optimizers_that_only_the_train_step_knows_are_saved_too(
    keras: Any, tmp_path: Path
) -> None:
    """As in a GAN: each of two optimizers trains its part."""

    class Gan(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.parts = [keras.layers.Dense(1), keras.layers.Dense(1)]
            self.first, self.second = (keras.optimizers.Adam(0.1) for _ in "ab")
            self(hook_loops.X[:1])
            for optimizer, part in zip(self.each, self.parts, strict=True):
                optimizer.build(part.trainable_variables)

        @property
        def each(self) -> list[Any]:
            return [self.first, self.second]

        def call(self, inputs: Any) -> Any:
            return self.parts[0](inputs) + self.parts[1](inputs)

        def train_step(self, data: Any) -> dict[str, Any]:
            for optimizer, part in zip(self.each, self.parts, strict=True):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(self(data[0]) ** 2)
                weights = part.trainable_variables
                gradients = tape.gradient(loss, weights)
                optimizer.apply_gradients(zip(gradients, weights, strict=True))
            return {"loss": loss}

    def slots(model: Any) -> list[Any]:
        return [np.asarray(v) for one in model.each for v in one.variables]

    keras.backend.clear_session()
    model = Gan()
    model.compile()
    saver = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=100)
    model.fit(hook_loops.X, hook_loops.Y, verbose=0, callbacks=hb.as_callbacks([saver]))
    keras.backend.clear_session()
    later = Gan()
    hb.checkpoints.restore(later, str(tmp_path))
    for got, expected in zip(slots(later), slots(model), strict=True):
        np.testing.assert_array_equal(got, expected)
