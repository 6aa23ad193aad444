"""Files that callbacks write of a graph, with or without a Keras model, read back."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, X, until_stop
from callback_recorder import callback_of, noting
from estimator_models import (
    KERAS2,
    MODEL,
    estimators,
    eval_input,
    keras_model_fn,
    train_input,
)
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True


def test_weights_of_a_keras_graph_load_into_an_eager_model(
    keras2: Any, tmp_path: Path
) -> None:
    checkpoint, layers = keras2.callbacks.ModelCheckpoint, keras2.layers
    paths = [str(tmp_path / name) for name in ("w.weights.h5", "w.h5", "ckpt")]
    weights, _ = keras_graph_loop(
        keras2, [checkpoint(path, save_weights_only=True) for path in paths]
    )
    inputs = layers.Input((2,), name="features")
    hidden = layers.Dense(3, activation="relu", name="hidden")
    norm, out = layers.BatchNormalization(name="norm"), layers.Dense(1, name="out")
    fresh = keras2.Sequential([inputs, hidden, norm, out])
    for path in paths:
        fresh.set_weights([w * 0 for w in weights])
        fresh.load_weights(path)
        np.testing.assert_equal(fresh.get_weights(), weights, path)


def test_layers_of_a_keras_graph_are_keras_layers_with_the_sessions_weights(
    keras2: Any,
) -> None:
    """Assigning to one, or by Keras's backend functions, sets the session."""
    seen: dict[str, Any] = {}
    backend = keras2.backend

    def look(self: Any, epoch: int, logs: Any) -> None:
        seen["names"] = [layer.name for layer in self.model.layers]
        seen["layer"] = self.model.get_layer("out").get_weights()
        seen["predict"] = self.model.predict(X)
        seen["config"] = self.model.get_config()["layers"][1]["config"]["name"]
        hidden = self.model.get_layer("hidden").kernel
        seen["kernel"] = backend.get_value(hidden)
        backend.set_value(hidden, 0 * seen["kernel"])
        seen["set"] = self.model.get_layer("hidden").get_weights()[0]

    def set_weights(self: Any, logs: Any) -> None:
        self.model.get_layer("out").set_weights([w * 0 for w in seen["layer"]])

    guest = callback_of(keras2, on_epoch_end=look, on_train_end=set_weights)
    weights, outputs = keras_graph_loop(keras2, guest, epochs=1)
    assert seen["names"] == ["features", "hidden", "norm", "out"]
    assert seen["config"] == "hidden"
    assert seen["predict"].shape == (12, 1)
    assert np.any(seen["layer"][0]) and np.any(seen["kernel"])
    assert not np.any(seen["set"]) and not np.any(weights[0])
    assert not np.any(weights[-2]) and not np.any(outputs)


def test_subclassed_model_with_a_configuration_is_saved_whole(
    keras2: Any, tmp_path: Path
) -> None:
    class Net(keras2.Model):  # type: ignore[misc, name-defined]
        """A user's own model that says how it is made."""

        def __init__(self, units: int, **options: Any) -> None:
            super().__init__(**options)
            self.units = units
            self.hidden = keras2.layers.Dense(units, name="hidden")
            self.out = keras2.layers.Dense(1, name="out")

        def call(self, x: Any, training: bool = False) -> Any:
            return self.out(self.hidden(x))

        def get_config(self) -> dict[str, Any]:
            return {"units": self.units, "name": self.name}

    paths = [str(tmp_path / name) for name in ("m.keras", "saved_model")]
    checkpoints = [keras2.callbacks.ModelCheckpoint(path) for path in paths]
    weights, outputs = keras_graph_loop(
        keras2, checkpoints, make=lambda parts: Net(3, name="net")
    )
    for path in paths:
        loaded = keras2.models.load_model(path, {"Net": Net}, compile=False)
        np.testing.assert_equal(loaded.get_weights(), weights)
        np.testing.assert_allclose(loaded.predict(X, verbose=0), outputs, rtol=1e-4)


def test_a_model_that_cannot_be_cloned(keras: Any, keras2: Any, tmp_path: Path) -> None:
    """Whole, it is refused before training; its weights are saved and restored."""

    class Net(keras2.Model):  # type: ignore[misc, name-defined]
        def __init__(self, parts: Any) -> None:
            super().__init__()
            self.parts = parts

        def call(self, x: Any, training: bool = False) -> Any:
            for part in self.parts:
                x = part(x)
            return x

    callbacks, path = keras.callbacks, str(tmp_path / "w.weights.h5")
    with pytest.raises(errors.RefusedError, match=r"get_config.*save_weights_only"):
        whole = callbacks.ModelCheckpoint(str(tmp_path / "m.keras"))
        keras_graph_loop(keras2, whole, make=Net)
    assert list(tmp_path.iterdir()) == []
    best = {"min_delta": 100.0, "patience": 1, "restore_best_weights": True}
    guests = [
        callbacks.ModelCheckpoint(path, save_weights_only=True),
        callbacks.EarlyStopping("loss", **best),
    ]
    weights, _ = keras_graph_loop(keras2, guests, make=Net, epochs=9)
    with h5py.File(path) as file:
        assert len(file.attrs["layer_names"]) == 3
    assert len(weights) == 8


EVENTS = ("on_train_begin", "on_test_end", "on_epoch_end", "on_train_end")


def test_after_validations_by_an_estimator(keras: Any, tmp_path: Path) -> None:
    """Its model and an eager model of its own work in every event."""
    keras2 = importlib.import_module(KERAS2)
    own = keras2.Sequential([keras2.layers.Dense(2, input_shape=(2,))])
    seen: list[str] = []

    def use(self: Any, event: str, *args: Any) -> None:
        if event == "on_epoch_end":
            self.model.evaluate()
        assert self.model.predict(X).shape == (len(X), 1)
        assert self.model(X).shape == (len(X), 1)
        (layer,) = self.model.layers
        assert layer(X).shape == (len(X), 1)
        assert own(X).shape == (len(X), 2)
        assert own.predict(X, verbose=0).shape == (len(X), 2)
        seen.append(event)

    config = estimators.RunConfig(str(tmp_path), save_checkpoints_steps=STEPS)
    estimator = estimators.Estimator(keras_model_fn, config=config)
    spec = estimators.EvalSpec(eval_input, steps=2, throttle_secs=0, start_delay_secs=0)
    hooks = hb.as_hooks(
        noting(keras, use, EVENTS),
        steps_per_epoch=STEPS,
        epochs=2,
        model=lambda: MODEL[0],
        validation=(estimator, spec),
    )
    train = estimators.TrainSpec(train_input, max_steps=2 * STEPS, hooks=hooks)
    estimators.train_and_evaluate(estimator, train, spec)
    assert seen.count("on_epoch_end") == 2
    assert seen[-1] == "on_train_end"


v1: Any = tf.compat.v1


# The scopes differ from the names that Keras gives to such layers.
SHAPES = {
    "stem/kernel": [3, 3, 1, 4],
    "stem/bias": [4],
    "norm/gamma": [4],
    "norm/beta": [4],
    "head/hidden/kernel": [4, 5],
    "head/hidden/bias": [5],
    "head/logits/kernel": [5, 2],
}
AVERAGES = {"norm/moving_mean": [4], "norm/moving_variance": [4]}


def saved(callback: Any, shapes: dict[str, list[int]]) -> list[Any]:
    """Trains one step with the callback; returns the weights at the end."""
    random = np.random.RandomState(3)

    def variable(name: str, shape: list[int], **options: Any) -> Any:
        value = random.uniform(0.5, 1.5, shape).astype("float32")
        return v1.get_variable(name, initializer=value, **options)

    with tf.Graph().as_default():
        trained = [variable(n, s) for n, s in shapes.items()]
        for name, shape in AVERAGES.items() if "norm/gamma" in shapes else ():
            average = variable(name, shape, trainable=False)
            v1.add_to_collection(v1.GraphKeys.MODEL_VARIABLES, average)
        loss = tf.add_n([tf.reduce_sum(t * t) for t in trained], name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, v1.train.get_or_create_global_step()
        )
        final = v1.train.FinalOpsHook([*trained, *v1.model_variables()])
        hooks = hb.as_hooks(callback, steps_per_epoch=1, epochs=1)
        until_stop([*hooks, final], train_op)
    return list(final.final_ops_values)


def test_file_of_a_bare_graph_loads_into_a_keras_model(
    keras: Any, tmp_path: Path
) -> None:
    """Under both file names: layers are found by class or, in `.h5`, by order."""
    path, layers = tmp_path / "w.weights.h5", keras.layers
    checkpoint = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=True)
    weights = saved(checkpoint, SHAPES)
    ours = dict(zip((*SHAPES, *AVERAGES), weights, strict=True))
    order = [n for n in ours if n.startswith(("stem", "norm"))]
    order += [n for n in ours if n.startswith("head")]
    for file in (path, shutil.copy(path, tmp_path / "w.h5")):
        parts = [layers.Input((6, 6, 1)), layers.Conv2D(4, 3)]
        parts += [layers.BatchNormalization(), layers.GlobalAveragePooling2D()]
        parts += [layers.Dense(5), layers.Dense(2, use_bias=False)]
        model = keras.Sequential(parts)
        model.load_weights(str(file))
        np.testing.assert_equal(model.get_weights(), [ours[name] for name in order])


def test_layers_of_a_bare_graph_are_told_by_their_variables(
    keras: Any, tmp_path: Path
) -> None:
    """One that cannot be told is never left out silently."""
    path = tmp_path / "w.weights.h5"
    shapes = {
        "a/words/embeddings": [5, 3],
        "a/narrow_3/bias": [4],
        "a/narrow_3/kernel": [2, 3, 4],
        "a/even/gamma": [4],
        "a/even/beta": [4],
    }
    checkpoint = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=True)
    saved(checkpoint, shapes)
    with h5py.File(path) as file:
        assert set(file["layers"]) == {"embedding", "conv1d", "layer_normalization"}
    weights = saved(checkpoint, {"mystery/w": [3, 2], "mystery/b": [2]})
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match=r"dense|Dense"):
        model.load_weights(str(path))
    shutil.copy(path, tmp_path / "w.h5")
    model.load_weights(str(tmp_path / "w.h5"))
    np.testing.assert_equal(weights, model.get_weights())


def test_scope_that_is_a_part_of_another_scope(keras: Any, tmp_path: Path) -> None:
    """As in the canned linear and combined Estimators; the files load back."""
    found: list[list[Any]] = []

    def read(self: Any, logs: Any) -> None:
        found.append(self.model.get_weights())
        for name in ("w.h5", "w.weights.h5"):
            self.model.save_weights(str(tmp_path / name))
            self.model.set_weights([0 * w for w in found[0]])
            self.model.load_weights(str(tmp_path / name))
            found.append(self.model.get_weights())

    shapes = {"linear/model/x/weights": [3, 1], "linear/model/bias": [1], "vars": [2]}
    more = {"linear/model/x/weights/part": [2], "layers": [1]}
    saved(callback_of(keras, on_train_end=read), {**shapes, **more})
    assert [len(weights) for weights in found] == [5] * 3
    for loaded in found[1:]:
        np.testing.assert_equal(found[0], loaded)
