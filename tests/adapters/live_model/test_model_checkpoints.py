"""What `ModelCheckpoint`, `BackupAndRestore` and `save_weights` write loads back."""

from __future__ import annotations

import importlib
import itertools
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, STEPS, session_loop
from callback_recorder import callback_of, noting
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1


def test_whole_models_of_a_keras_graph(keras: Any, keras2: Any, tmp_path: Path) -> None:
    """In every format; each file loads, and predicts with its own weights."""
    checkpoint, weights = keras.callbacks.ModelCheckpoint, dict[str, Any]()

    def keep(self: Any, batch: int, logs: Any = None) -> None:
        epoch = 1 + len(weights) // 3
        weights[f"m{epoch}-{batch + 1}"] = self.model.get_weights()

    guests = [callback_of(keras, on_train_batch_end=keep)]
    for ending in (".keras", ".h5"):
        path = tmp_path / ending / ("m{epoch}-{batch}" + ending)
        guests.append(checkpoint(str(path), save_freq=2))
    if keras is keras2:  # ModelCheckpoint of Keras 3 has no such format
        guests.append(checkpoint(str(tmp_path / "saved" / "m1-3"), save_freq=3))
    keras_graph_loop(keras2, guests, epochs=2)
    expected = {".keras": 3, ".h5": 3, "saved": 1}
    for folder in tmp_path.iterdir():
        written = sorted(folder.glob("*"))
        assert len(written) == expected[folder.name]
        for path in written:
            model = keras2.models.load_model(str(path), compile=False)
            kept = weights["m2-3" if folder.name == "saved" else path.stem]
            np.testing.assert_equal(model.get_weights(), kept, str(path))


def test_options_that_keras_2_alone_has(keras2: Any, tmp_path: Path) -> None:
    """`options`, `period`, `load_weights_on_restart`, and the format of TensorFlow."""
    c = importlib.import_module(keras2.__name__).callbacks
    paths = [str(tmp_path / name) for name in ("c-{epoch}", "c-{epoch}.h5")]
    here = tf.train.CheckpointOptions(experimental_io_device="/job:localhost")
    only: dict[str, Any] = {"save_weights_only": True}
    every_second = c.ModelCheckpoint(
        str(tmp_path / "w{epoch}.h5"), period=2, verbose=1, **only
    )
    guests = [
        c.ModelCheckpoint(paths[0], options=here, **only),
        c.ModelCheckpoint(paths[1], **only),
        every_second,
    ]
    first = session_loop(guests, epochs=5, validate=False)
    assert sorted(p.name for p in tmp_path.glob("w*")) == ["w2.h5", "w4.h5"]
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest == str(tmp_path / "c-5")
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("dense"):
            kernel = v1.get_variable("kernel", [2, 1])
        v1.train.Saver([kernel]).restore(session, latest)
        np.testing.assert_array_equal(session.run(kernel), first.weights[0])
    seen: list[Any] = []
    looks = callback_of(
        keras2,
        on_epoch_begin=lambda self, epoch, logs: seen.append(self.model.get_weights()),
    )
    for path in paths:
        again = c.ModelCheckpoint(path, load_weights_on_restart=True, **only)
        session_loop([again, looks], epochs=1, validate=False)
        np.testing.assert_equal(seen[-1], first.weights)


def write_h5(path: Path, **weights: Any) -> str:
    """A file of a layer `dense`."""
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [b"dense"]
        group = file.create_group("dense")
        group.attrs["weight_names"] = [f"dense/{n}:0".encode() for n in weights]
        for name, value in weights.items():
            group[f"dense/{name}:0"] = value
    return str(path)


def test_weights_of_a_bare_graph_are_saved_and_loaded(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    """Formats by option; a file with other variables; options without effect."""
    path = str(tmp_path / "w")
    elsewhere = tf.train.CheckpointOptions(experimental_io_device="/job:ps")
    here = tf.train.CheckpointOptions(experimental_io_device="/job:localhost")
    start = [KERNEL * 2, np.full(1, 0.5, "float32")]

    def check(model: Any, *expected: Any) -> None:
        for found, value in zip(model.get_weights(), expected, strict=True):
            np.testing.assert_array_equal(found, np.asarray(value, "float32"))

    def formats(model: Any) -> None:
        model.set_weights(start)
        model.save_weights(path, save_format="h5")
        model.set_weights([KERNEL * 3, [0.6]])
        model.load_weights(path)
        check(model, *start)
        for name, save_format in (("w.h5", "tf"), ("v", "zip")):
            with pytest.raises(errors.InvalidArgumentError, match="expected"):
                model.save_weights(str(tmp_path / name), True, save_format)
        assert [p.name for p in tmp_path.iterdir()] == ["w"]

    def other_variables(model: Any) -> None:
        fewer = write_h5(tmp_path / "fewer.h5", bias=np.full(1, 7, "float32"))
        shapes = {"bias": np.full(2, 7, "float32"), "kernel": KERNEL * 4}
        mismatch = write_h5(tmp_path / "mismatch.h5", **shapes)
        for each in (fewer, mismatch):
            with pytest.raises(errors.InvalidArgumentError):
                model.load_weights(each)
        model.load_weights(fewer, by_name=True)
        check(model, start[0], [7])
        model.load_weights(mismatch, by_name=True, skip_mismatch=True)
        check(model, KERNEL * 4, [7])

    def no_effect(model: Any) -> None:
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

    def use(self: Any, logs: Any) -> None:
        formats(self.model)
        other_variables(self.model)
        assert h5py.is_hdf5(path)
        twin.load_weights(path)
        no_effect(self.model)

    twin = keras2.Sequential([keras2.layers.Input((2,)), keras2.layers.Dense(1)])
    session_loop([callback_of(keras, on_train_begin=use)], epochs=1, rate=0.0)
    np.testing.assert_array_equal(twin.get_weights()[0], start[0])


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


# --- backups ------------------------------------------------------------------
DIES_AT = 2 * STEPS + 2
NUMBERED = ("on_epoch_begin",)


def dies(keras: Any, at: int = DIES_AT) -> Any:
    """Ends a run without any `end`, as a kill does."""

    steps = itertools.count(1)

    def die(self: Any, batch: int, logs: Any) -> None:
        if next(steps) == at:
            raise KeyboardInterrupt

    return callback_of(keras, on_train_batch_begin=die)


def rate_variable() -> Any:
    return v1.get_variable("lr", initializer=0.1, trainable=False)


@pytest.mark.parametrize("rate", ["constant", "variable"])
def test_optimizer_and_learning_rate_are_restored(
    keras: Any, tmp_path: Path, rate: str
) -> None:
    c = keras.callbacks
    folder = str(tmp_path / "backup")

    def run(*callbacks: Any) -> Any:
        # Each epoch's rate depends on that of the epoch before.
        halves = c.LearningRateScheduler(lambda epoch, lr: lr * 0.5)
        return session_loop(
            [*callbacks, halves],
            optimizer=v1.train.AdamOptimizer,
            rate=0.1 if rate == "constant" else rate_variable,
            validate=False,
        )

    whole = run()
    with pytest.raises(KeyboardInterrupt):
        run(c.BackupAndRestore(folder), dies(keras))
    again = run(c.BackupAndRestore(folder))
    assert len(again.history["loss"]) == 4  # `History` goes on with its state
    assert again.steps == whole.steps
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    for key, values in again.history.items():
        np.testing.assert_allclose(values, whole.history[key], rtol=1e-5)
    assert not Path(folder).exists() or not list(Path(folder).rglob("*.h5"))


def test_batches_are_backed_up_too(
    subtests: pytest.Subtests, keras2: Any, tmp_path: Path
) -> None:
    """Two epochs, and the first two batches of the third one."""
    whole = session_loop([keras2.callbacks.Callback()], validate=False)
    epochs: list[int] = []
    for at in (2 * STEPS + 3, 10**6):
        with subtests.test(str(at)):
            backup = keras2.callbacks.BackupAndRestore(str(tmp_path / "b"), save_freq=2)
            notes = noting(keras2, lambda _, event, n, *__: epochs.append(n), NUMBERED)
            with pytest.raises(KeyboardInterrupt) if at < 100 else nullcontext():
                again = session_loop([backup, dies(keras2, at), notes], validate=False)
                assert again.steps == 4 * STEPS
    assert epochs == [0, 1, 2, 2, 3]
    np.testing.assert_allclose(again.weights[0], whole.weights[0], rtol=1e-5)


def test_a_backup_without_some_variables_is_reported(
    keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    def run(*guests: Any, **options: Any) -> int:
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))
        return session_loop([backup, *guests], validate=False, **options).steps

    with pytest.raises(KeyboardInterrupt):
        run(dies(keras))
    path = tmp_path / "backup" / "latest.weights.h5"
    if not path.exists():  # Keras 2 writes a checkpoint of the whole session
        assert list(path.parent.rglob("*.index"))
        return
    assert run(optimizer=v1.train.AdamOptimizer) == 4 * STEPS
    assert "dense/kernel/Adam_1" in absl_records(str(path))[0].getMessage()
