"""What `ModelCheckpoint` writes in a session, with each of its options, loads back."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import fit, session_loop
from keras_graph import keras_graph_loop


def load(keras: Any, path: Path) -> list[Any]:
    model = keras.Sequential(
        [keras.layers.Input((2,)), keras.layers.Dense(1, name="dense")]
    )
    model.load_weights(str(path))
    return list(model.get_weights())


@pytest.mark.slow
def test_weights_files_hold_what_those_of_fit_hold(keras: Any, tmp_path: Path) -> None:
    """By epoch and by batch; the files of both loops load into a model of Keras."""
    names = ("w{epoch}-{val_loss:.2f}.weights.h5", "b{epoch}-{batch}.weights.h5")
    found: list[dict[str, list[Any]]] = []
    for place in (tmp_path / "fit", tmp_path / "session"):
        place.mkdir()
        by_epoch, by_batch = (
            keras.callbacks.ModelCheckpoint(
                str(place / name), save_weights_only=True, save_freq=freq
            )
            for name, freq in zip(names, ("epoch", 2), strict=True)
        )
        if place.name == "fit":
            fit(keras, [by_epoch, by_batch], epochs=3)
        else:
            session_loop([by_epoch, by_batch], epochs=3)
        found.append({p.name: load(keras, p) for p in sorted(place.iterdir())})
    native, bridged = found
    assert list(native) == list(bridged)
    assert len(native) == 3 + 4
    for name, weights in native.items():
        for ours, theirs in zip(bridged[name], weights, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, err_msg=name)
    assert len({w[0].tobytes() for w in bridged.values()}) > 4


# --- a Keras 2 model in the graph -----------------------------------------------------

FORMATS = {"keras": ".keras", "h5": ".h5", "saved_model": ""}
# Name -> (options, file name, files after two epochs of three steps).
WHOLE: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "by_batch": ({"save_freq": 2}, "m{epoch}-{batch}", ["m1-2", "m2-1", "m2-3"]),
    "best": ({"save_best_only": True, "monitor": "loss"}, "m{epoch}", ["m1", "m2"]),
    "threshold": (
        {
            "save_best_only": True,
            "monitor": "loss",
            "mode": "min",
            "initial_value_threshold": -1.0,
        },
        "m{epoch}",
        [],
    ),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_whole_models_with_every_option(
    keras: Any, keras2: Any, kind: str, tmp_path: Path
) -> None:
    """One run with all of them; each file loads, and predicts with its own weights."""
    if kind == "saved_model" and keras is not keras2:
        return  # ModelCheckpoint of Keras 3 has no such format
    # A SavedModel takes seconds to write and to load.
    cases = {"best": WHOLE["best"]} if kind == "saved_model" else WHOLE
    checkpoints, weights = [], {}
    for name, (options, template, _) in cases.items():
        path = tmp_path / name / (template + FORMATS[kind])
        checkpoints.append(keras.callbacks.ModelCheckpoint(str(path), **options))

    class Weights(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch + 1

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            weights[f"m{self.epoch}-{batch + 1}"] = self.model.get_weights()
            weights[f"m{self.epoch}"] = self.model.get_weights()

    keras_graph_loop(keras2, [Weights(), *checkpoints], epochs=2)
    for name, (_, _, expected) in cases.items():
        written = sorted((tmp_path / name).glob("*"))
        stems = [p.name.removesuffix(FORMATS[kind]) for p in written]
        assert stems == expected, name
        for stem, path in zip(stems, written, strict=True):
            model = keras2.models.load_model(str(path), compile=False)
            for ours, theirs in zip(model.get_weights(), weights[stem], strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=str(path))


# --- options that Keras 2 alone has ---------------------------------------------------

FIRST: dict[str, Callable[[Any, str], Any]] = {
    "c-{epoch}": lambda c, path: c.ModelCheckpoint(
        path,
        save_weights_only=True,
        options=tf.train.CheckpointOptions(experimental_io_device="/job:localhost"),
    ),
    "c-{epoch}.h5": lambda c, path: c.ModelCheckpoint(path, save_weights_only=True),
}


@pytest.mark.parametrize("name", FIRST)
def test_load_weights_on_restart(keras2: Any, name: str, tmp_path: Path) -> None:
    callbacks = importlib.import_module(keras2.__name__).callbacks
    path = str(tmp_path / name)
    first = session_loop([FIRST[name](callbacks, path)], epochs=2, validate=False)
    seen: list[Any] = []

    class Look(callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            seen.append(self.model.get_weights())

    again = callbacks.ModelCheckpoint(
        path, save_weights_only=True, load_weights_on_restart=True
    )
    session_loop([again, Look()], epochs=1, validate=False)
    for ours, theirs in zip(seen[0], first.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_period(keras2: Any, tmp_path: Path) -> None:
    checkpoint = keras2.callbacks.ModelCheckpoint(
        str(tmp_path / "w{epoch}.h5"), save_weights_only=True, period=2, verbose=1
    )
    session_loop([checkpoint], epochs=5, validate=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w2.h5", "w4.h5"]
