"""What `ModelCheckpoint` and `save_weights` write loads back, with each option."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, session_loop
from callback_recorder import callback_of
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True


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
    checkpoints, weights = [], dict[str, Any]()
    for name, (options, template, _) in cases.items():
        path = tmp_path / name / (template + FORMATS[kind])
        checkpoints.append(keras.callbacks.ModelCheckpoint(str(path), **options))

    def keep(self: Any, batch: int, logs: Any = None) -> None:
        epoch = 1 + len(weights) // 4
        for stem in (f"m{epoch}-{batch + 1}", f"m{epoch}"):
            weights[stem] = self.model.get_weights()

    guests = [callback_of(keras, on_train_batch_end=keep), *checkpoints]
    keras_graph_loop(keras2, guests, epochs=2)
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

    def look(self: Any, epoch: int, logs: Any = None) -> None:
        seen.append(self.model.get_weights())

    again = callbacks.ModelCheckpoint(
        path, save_weights_only=True, load_weights_on_restart=True
    )
    looks = callback_of(keras2, on_epoch_begin=look)
    session_loop([again, looks], epochs=1, validate=False)
    for ours, theirs in zip(seen[0], first.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_period(keras2: Any, tmp_path: Path) -> None:
    checkpoint = keras2.callbacks.ModelCheckpoint(
        str(tmp_path / "w{epoch}.h5"), save_weights_only=True, period=2, verbose=1
    )
    session_loop([checkpoint], epochs=5, validate=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w2.h5", "w4.h5"]


def test_tf_format_of_a_bare_graph_loads_in_a_v1_saver(
    keras2: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "ckpt-{epoch}")
    run = session_loop([keras2.callbacks.ModelCheckpoint(path, save_weights_only=True)])
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "ckpt-4")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.compat.v1.variable_scope("dense"):
            kernel = tf.compat.v1.get_variable("kernel", [2, 1])
        tf.compat.v1.train.Saver([kernel]).restore(session, str(tmp_path / "ckpt-4"))
        np.testing.assert_array_equal(session.run(kernel), run.weights[0])


def at_the_begin(keras: Any, body: Callable[[Any], None], **options: Any) -> Any:
    """A session loop whose callback calls `body(model)` in `on_train_begin`."""

    guest = callback_of(keras, on_train_begin=lambda self, logs: body(self.model))
    return session_loop([guest], epochs=1, rate=0.0, **options)


def test_format_by_option(keras: Any, keras2: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "w")

    def save_and_load(model: Any) -> None:
        model.set_weights([KERNEL * 2, [0.5]])
        model.save_weights(path, save_format="h5")
        model.set_weights([KERNEL * 3, [0.6]])
        model.load_weights(path)

    loop = at_the_begin(keras, save_and_load)
    assert [p.name for p in tmp_path.iterdir()] == ["w"]
    assert h5py.is_hdf5(path)
    np.testing.assert_array_equal(loop.weights[0], KERNEL * 2)
    twin = keras2.Sequential([keras2.layers.Input((2,)), keras2.layers.Dense(1)])
    twin.load_weights(path)
    np.testing.assert_array_equal(twin.get_weights()[0], KERNEL * 2)


def test_format_that_does_not_fit_the_name(keras: Any, tmp_path: Path) -> None:
    def save(model: Any) -> None:
        for name, save_format in (("w.h5", "tf"), ("w", "zip")):
            with pytest.raises(errors.InvalidArgumentError, match="expected"):
                model.save_weights(str(tmp_path / name), True, save_format)

    at_the_begin(keras, save)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("skip_mismatch", [False, True])
def test_file_with_other_variables(
    keras: Any, skip_mismatch: bool, tmp_path: Path
) -> None:
    path = str(tmp_path / "w.h5")
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [b"dense"]
        group = file.create_group("dense")
        group.attrs["weight_names"] = [b"dense/bias:0"]
        group["dense/bias:0"] = np.full(2 if skip_mismatch else 1, 7, "float32")
        if skip_mismatch:
            group.attrs["weight_names"] = [b"dense/bias:0", b"dense/kernel:0"]
            group["dense/kernel:0"] = KERNEL * 4

    def load(model: Any) -> None:
        with pytest.raises(errors.InvalidArgumentError):
            model.load_weights(path)
        model.load_weights(path, by_name=True, skip_mismatch=skip_mismatch)

    kernel, bias = at_the_begin(keras, load).weights
    np.testing.assert_array_equal(kernel, KERNEL * 4 if skip_mismatch else KERNEL)
    assert bias == pytest.approx(0.1 if skip_mismatch else 7)


def test_options_without_effect(keras: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "w.h5")
    elsewhere = tf.train.CheckpointOptions(experimental_io_device="/job:ps")
    here = tf.train.CheckpointOptions(experimental_io_device="/job:localhost")

    def use(model: Any) -> None:
        with pytest.raises(errors.LiveModelError, match="max_shard_size"):
            model.save_weights(path, max_shard_size=1)
        with pytest.raises(errors.LiveModelError, match="job:ps"):
            model.save_weights(path, options=elsewhere)
        model.save_weights(path, options=here)
        with pytest.raises(errors.LiveModelError, match="objects_to_skip"):
            model.load_weights(path, objects_to_skip=["dense"])
        with pytest.raises(errors.LiveModelError, match="steps"):
            model.evaluate(steps=1)
        assert len(model.evaluate(verbose=0)) == 2

    at_the_begin(keras, use)


def test_checkpoint_callback_whose_options_have_no_effect(
    keras2: Any, tmp_path: Path
) -> None:
    def checkpoint(name: str) -> Any:
        return keras2.callbacks.ModelCheckpoint(
            str(tmp_path / name),
            save_weights_only=True,
            options=tf.train.CheckpointOptions(
                experimental_write_callbacks=[lambda: None]
            ),
        )

    with pytest.raises(errors.RefusedError, match="experimental_write_callbacks"):
        hb.as_hooks(checkpoint("w"), steps_per_epoch=2)
    # Keras does not pass the options on for HDF5 files.
    hb.as_hooks(checkpoint("w.weights.h5"), steps_per_epoch=2)
