"""Options of `save_weights` and `load_weights`: they act, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, session_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True


def at_the_begin(keras: Any, body: Callable[[Any], None], **options: Any) -> Any:
    """A session loop whose callback calls `body(model)` in `on_train_begin`."""

    class Body(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            body(self.model)

    return session_loop([Body()], epochs=1, rate=0.0, **options)


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
