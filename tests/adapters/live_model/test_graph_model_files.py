"""Files that callbacks write of a Keras model in a graph, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from callback_loops import X
from keras_graph import keras_graph_loop

from hookbridge import errors


@pytest.mark.parametrize("name", ["w.weights.h5", "w.h5", "ckpt"])
def test_weights_of_a_keras_graph_load_into_an_eager_model(
    keras2: Any, name: str, tmp_path: Path
) -> None:
    path = str(tmp_path / name)
    weights, _ = keras_graph_loop(
        keras2, keras2.callbacks.ModelCheckpoint(path, save_weights_only=True)
    )
    fresh = keras2.Sequential(
        [
            keras2.layers.Input((2,), name="features"),
            keras2.layers.Dense(3, activation="relu", name="hidden"),
            keras2.layers.BatchNormalization(name="norm"),
            keras2.layers.Dense(1, name="out"),
        ]
    )
    fresh.load_weights(path)
    for ours, theirs in zip(fresh.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_restoring_best_weights_sets_every_weight_of_a_keras_graph(
    keras: Any, keras2: Any
) -> None:
    at_end: list[Any] = []

    class Keep(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            at_end.append(self.model.get_weights())

    stop = keras.callbacks.EarlyStopping(
        "loss", min_delta=100.0, patience=2, restore_best_weights=True
    )
    weights, _ = keras_graph_loop(keras2, [Keep(), stop], epochs=9)
    assert len(at_end) == 3
    for ours, theirs in zip(weights, at_end[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert len(weights) == 8


def test_layers_of_a_keras_graph_are_keras_layers_with_the_sessions_weights(
    keras2: Any,
) -> None:
    seen: dict[str, Any] = {}

    class Look(keras2.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen["names"] = [layer.name for layer in self.model.layers]
            seen["layer"] = self.model.get_layer("out").get_weights()
            seen["predict"] = self.model.predict(X)
            seen["config"] = self.model.get_config()["layers"][1]["config"]["name"]

        def on_train_end(self, logs: Any = None) -> None:
            # Assigning to a layer sets the session.
            self.model.get_layer("out").set_weights([w * 0 for w in seen["layer"]])

    weights, outputs = keras_graph_loop(keras2, Look(), epochs=1)
    assert seen["names"] == ["features", "hidden", "norm", "out"]
    assert seen["config"] == "hidden"
    assert np.any(seen["layer"][0])
    assert seen["predict"].shape == (12, 1)
    assert not np.any(weights[-2])
    assert not np.any(outputs)


def _subclassed(keras2: Any) -> Any:
    class Net(keras2.Model):  # type: ignore[misc, name-defined]
        def __init__(self, parts: Any) -> None:
            super().__init__()
            self.parts = parts

        def call(self, x: Any, training: bool = False) -> Any:
            for part in self.parts:
                x = part(x)
            return x

    return Net


def test_whole_model_that_cannot_be_cloned_is_refused_before_training(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    checkpoint = keras.callbacks.ModelCheckpoint(str(tmp_path / "m.keras"))
    with pytest.raises(errors.RefusedError, match=r"get_config.*save_weights_only"):
        keras_graph_loop(keras2, checkpoint, make=_subclassed(keras2))
    assert list(tmp_path.iterdir()) == []


def test_weights_of_a_model_that_cannot_be_cloned(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "w.weights.h5")
    stop = keras.callbacks.EarlyStopping(
        "loss", min_delta=100.0, patience=1, restore_best_weights=True
    )
    weights, _ = keras_graph_loop(
        keras2,
        [keras.callbacks.ModelCheckpoint(path, save_weights_only=True), stop],
        make=_subclassed(keras2),
        epochs=9,
    )
    with h5py.File(path) as file:
        assert len(file.attrs["layer_names"]) == 3
    assert len(weights) == 8


@pytest.mark.parametrize("name", ["m.keras", "saved_model"])
def test_subclassed_model_with_a_configuration_is_saved_whole(
    keras2: Any, name: str, tmp_path: Path
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

        @classmethod
        def from_config(cls, config: dict[str, Any]) -> Any:
            return cls(**config)

    path = str(tmp_path / name)
    checkpoint = keras2.callbacks.ModelCheckpoint(path)
    weights, outputs = keras_graph_loop(
        keras2, checkpoint, make=lambda parts: Net(3, name="net")
    )
    loaded = keras2.models.load_model(path, {"Net": Net}, compile=False)
    for ours, theirs in zip(loaded.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(loaded.predict(X, verbose=0), outputs, rtol=1e-4)
