"""Files that callbacks write in a session loop, read back."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import (
    X,
    fit,
    session_loop,
)
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors


def native_and_bridged(
    keras: Any, make: Callable[[Path], Any], tmp_path: Path, **options: Any
) -> tuple[list[str], list[str]]:
    for name in ("fit", "session"):
        (tmp_path / name).mkdir()
    fit(keras, [make(tmp_path / "fit")], **options)
    session_loop([make(tmp_path / "session")], **options)
    return sorted(os.listdir(tmp_path / "fit")), sorted(
        os.listdir(tmp_path / "session")
    )


CHECKPOINTS: dict[str, dict[str, Any]] = {
    "by_epoch": {"filepath": "w{epoch:02d}-{val_loss:.2f}.weights.h5"},
    "by_batch": {"filepath": "w{epoch}-{batch}.weights.h5", "save_freq": 2},
    "best_only": {
        "filepath": "w{epoch}.weights.h5",
        "save_best_only": True,
        "monitor": "val_loss",
    },
    "best_of_metric": {
        "filepath": "w{epoch}-{mae:.3f}.weights.h5",
        "save_best_only": True,
        "monitor": "mae",
        "mode": "max",
    },
    "threshold": {
        "filepath": "w{epoch}.weights.h5",
        "save_best_only": True,
        "monitor": "loss",
        "initial_value_threshold": 1.0,
    },
}


@pytest.mark.parametrize("case", CHECKPOINTS)
def test_model_checkpoint_writes_what_it_writes_in_fit(
    keras: Any, case: str, tmp_path: Path
) -> None:
    options = CHECKPOINTS[case]

    def make(folder: Path) -> Any:
        return keras.callbacks.ModelCheckpoint(
            **{**options, "filepath": str(folder / options["filepath"])},
            save_weights_only=True,
        )

    native, bridged = native_and_bridged(keras, make, tmp_path, epochs=5)
    assert native == bridged
    assert native
    for name in bridged:
        with h5py.File(tmp_path / "session" / name) as file:
            assert file["dense/dense/kernel:0"].shape == (2, 1)


def test_weights_file_of_a_bare_graph_loads_back(keras: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "w.weights.h5")
    loaded: list[Any] = []

    class Loader(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.model.load_weights(path)
            loaded.extend(self.model.get_weights())

    checkpoint = keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    first = session_loop([checkpoint])
    session_loop([Loader()], epochs=1)
    for ours, theirs in zip(loaded, first.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


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


# --- a Keras 2 model in the graph ---------------------------------------------------


@pytest.mark.parametrize("name", ["m.h5", "m.keras", "saved_model"])
def test_whole_model_of_a_keras_graph_loads_and_predicts(
    keras2: Any, name: str, tmp_path: Path
) -> None:
    path = str(tmp_path / name)
    weights, outputs = keras_graph_loop(keras2, keras2.callbacks.ModelCheckpoint(path))
    loaded = keras2.models.load_model(path, compile=False)
    for ours, theirs in zip(loaded.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(loaded.predict(X, verbose=0), outputs, rtol=1e-4)


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


def test_keras3_checkpoint_of_a_keras2_graph(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "m.keras")
    weights, _ = keras_graph_loop(keras2, keras.callbacks.ModelCheckpoint(path))
    loaded = keras2.models.load_model(path, compile=False)
    for ours, theirs in zip(loaded.get_weights(), weights, strict=True):
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


# --- BackupAndRestore ---------------------------------------------------------------

BACKUP = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, "tests/adapters")
import importlib
import callback_loops as loops
keras = importlib.import_module(sys.argv[1])
folder, die_at, freq = sys.argv[2], int(sys.argv[3]), sys.argv[4]

class Die(keras.callbacks.Callback):
    epochs = []
    batches = 0
    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(epoch)
    def on_train_batch_begin(self, batch, logs=None):
        if self.batches == die_at:
            os._exit(9)
        Die.batches += 1

option = {} if freq == "epoch" else {"save_freq": int(freq)}
run = loops.session_loop(
    [keras.callbacks.BackupAndRestore(folder, **option), Die()], validate=False
)
print("RESULT", Die.epochs, Die.batches, run.steps, run.weights[0].ravel().tolist(),
      os.path.exists(folder) and os.listdir(folder))
"""


def _run_backup(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BACKUP), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.slow
def test_backup_and_restore_continues_after_a_kill(keras: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "backup")
    whole = session_loop([keras.callbacks.Callback()], validate=False)
    killed = _run_backup(keras.__name__, folder, "7", "epoch")
    assert killed.returncode == 9, killed.stderr
    assert os.listdir(folder)
    again = _run_backup(keras.__name__, folder, "-1", "epoch")
    assert again.returncode == 0, again.stderr
    line = next(x for x in again.stdout.splitlines() if x.startswith("RESULT"))
    # Two epochs were backed up; the third is done again from its beginning.
    assert line.startswith("RESULT [2, 3] 6 12 ")
    weights = [float(w) for w in line.split("[")[2].split("]")[0].split(",")]
    np.testing.assert_allclose(weights, whole.weights[0].ravel(), rtol=1e-5)


@pytest.mark.slow
def test_backup_by_batch_continues_at_the_batch(keras2: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "backup")
    killed = _run_backup(keras2.__name__, folder, "7", "2")
    assert killed.returncode == 9, killed.stderr
    again = _run_backup(keras2.__name__, folder, "-1", "2")
    assert again.returncode == 0, again.stderr
    line = next(x for x in again.stdout.splitlines() if x.startswith("RESULT"))
    assert line.startswith("RESULT [2, 3] 6 12 ")


# --- TensorBoard --------------------------------------------------------------------


def events(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """`{tag: [(step, value)]}` of all event files under a folder."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for file in sorted(folder.rglob("events.out.tfevents.*")):
        prefix = file.parent.relative_to(folder)
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            if event.HasField("graph_def"):
                found.setdefault(f"{prefix}:graph", []).append((0, None))
            for value in event.summary.value:
                number = None
                plugin = value.metadata.plugin_data.plugin_name
                if value.HasField("tensor"):
                    array = tf.make_ndarray(value.tensor)
                    number = (
                        float(array)
                        if array.shape == () and (array.dtype.kind == "f")
                        else None
                    )
                key = f"{prefix}:{value.tag}"
                del plugin
                found.setdefault(key, []).append((event.step, number))
    return found


def _tags(found: dict[str, Any]) -> list[str]:
    return sorted(found)


def test_tensorboard_writes_the_scalars_of_fit(keras: Any, tmp_path: Path) -> None:
    def make(folder: Path) -> Any:
        return keras.callbacks.TensorBoard(
            str(folder), update_freq=1, write_graph=False, histogram_freq=1
        )

    native_and_bridged(keras, make, tmp_path)
    native, bridged = events(tmp_path / "fit"), events(tmp_path / "session")

    # In `fit` of Keras 2 the batch scalars come from inside the train step.
    def scalars(found: dict[str, Any]) -> dict[str, Any]:
        return {
            k: v
            for k, v in found.items()
            if ("epoch_" in k or "evaluation_" in k or "batch_" in k)
            and "steps_per_second" not in k
        }

    assert _tags(scalars(bridged)) == _tags(scalars(native))
    for tag, points in scalars(native).items():
        assert [p[0] for p in bridged[tag]] == [p[0] for p in points], tag
        np.testing.assert_allclose(
            [p[1] for p in bridged[tag]], [p[1] for p in points], rtol=2e-5, err_msg=tag
        )
    histograms = [t for t in bridged if "histogram" in t]
    assert len(histograms) == len([t for t in native if "histogram" in t]) == 2


def test_tensorboard_writes_the_sessions_graph(keras: Any, tmp_path: Path) -> None:
    # Without batch methods to call, Keras 2 does not get to writing it in `fit` either.
    session_loop(
        [keras.callbacks.TensorBoard(str(tmp_path), write_steps_per_second=True)]
    )
    assert any(t.endswith(":graph") for t in events(tmp_path))


def test_tensorboard_profiles_a_range(keras: Any, tmp_path: Path) -> None:
    session_loop([keras.callbacks.TensorBoard(str(tmp_path), profile_batch=(2, 4))])
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_tensorboard_made_inside_the_graph(keras2: Any, tmp_path: Path) -> None:
    with tf.Graph().as_default():
        callback = keras2.callbacks.TensorBoard(str(tmp_path), histogram_freq=1)
    session_loop([callback])
    assert "train:epoch_loss" in events(tmp_path)


def test_tensorboard_without_its_package_says_so(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    callback = keras.callbacks.TensorBoard(str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(errors.MissingExtraError, match="pip install tensorboard"):
        hb.as_hooks(callback, steps_per_epoch=2)
