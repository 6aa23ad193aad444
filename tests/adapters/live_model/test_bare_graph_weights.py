"""Weights of a bare graph, saved by callbacks, in models of Keras."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.adapters.live_model import weight_files

v1: Any = tf.compat.v1

# The scopes differ from the names that Keras gives to such layers.
SHAPES: dict[str, list[int]] = {
    "stem/kernel": [3, 3, 1, 4],
    "stem/bias": [4],
    "norm/gamma": [4],
    "norm/beta": [4],
    "head/hidden/kernel": [4, 5],
    "head/hidden/bias": [5],
    "head/logits/kernel": [5, 2],
}
AVERAGES: dict[str, list[int]] = {"norm/moving_mean": [4], "norm/moving_variance": [4]}


def saved(callback: Any, shapes: dict[str, list[int]]) -> list[Any]:
    """Trains one step with the callback; returns the weights at the end."""
    seen: list[Any] = []

    with tf.Graph().as_default():
        random = np.random.RandomState(3)

        def variable(name: str, shape: list[int], **options: Any) -> Any:
            value = random.uniform(0.5, 1.5, shape).astype("float32")
            return v1.get_variable(name, initializer=value, **options)

        trained = [variable(n, s) for n, s in shapes.items()]
        if "norm/gamma" in shapes:
            for name, shape in AVERAGES.items():
                average = variable(name, shape, trainable=False)
                v1.add_to_collection(v1.GraphKeys.MODEL_VARIABLES, average)
        loss = tf.add_n([tf.reduce_sum(t * t) for t in trained], name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, v1.train.get_or_create_global_step()
        )

        class Weights(v1.train.SessionRunHook):  # type: ignore[misc]
            def end(self, session: Any) -> None:
                seen.extend(session.run([*trained, *v1.model_variables()]))

        hooks = hb.as_hooks(callback, steps_per_epoch=1)
        with v1.train.MonitoredTrainingSession(hooks=[*hooks, Weights()]) as session:
            session.run(train_op)
    return seen


@pytest.mark.parametrize("suffix", [".weights.h5", ".h5"])
def test_file_of_a_bare_graph_loads_into_a_keras_model(
    keras: Any, tmp_path: Path, suffix: str
) -> None:
    """Under both file names: layers are found by class or, in `.h5`, by order."""
    path = tmp_path / "w.weights.h5"
    checkpoint = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=True)
    weights = saved(checkpoint, SHAPES)
    model = keras.Sequential(
        [
            keras.layers.Input((6, 6, 1)),
            keras.layers.Conv2D(4, 3),
            keras.layers.BatchNormalization(),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5),
            keras.layers.Dense(2, use_bias=False),
        ]
    )
    if suffix == ".h5":
        path = Path(shutil.copy(path, tmp_path / "w.h5"))
    model.load_weights(str(path))
    ours = dict(zip((*SHAPES, *AVERAGES), weights, strict=True))
    order = [n for n in ours if n.startswith(("stem", "norm"))]
    order += [n for n in ours if n.startswith("head")]
    for name, loaded in zip(order, model.get_weights(), strict=True):
        np.testing.assert_array_equal(loaded, ours[name], err_msg=name)


def test_layer_that_cannot_be_told_is_never_left_out_silently(
    keras: Any, tmp_path: Path
) -> None:
    path = tmp_path / "w.weights.h5"
    checkpoint = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=True)
    weights = saved(checkpoint, {"mystery/w": [3, 2], "mystery/b": [2]})
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match=r"dense|Dense"):
        model.load_weights(str(path))
    shutil.copy(path, tmp_path / "w.h5")
    model.load_weights(str(tmp_path / "w.h5"))
    for ours, loaded in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, loaded)


@pytest.mark.parametrize(
    ("names", "ranks", "expected"),
    [
        (["kernel", "bias"], [2, 1], "dense"),
        (["bias", "kernel"], [1, 4], "conv2d"),
        (["kernel"], [3], "conv1d"),
        (["embeddings"], [2], "embedding"),
        (["beta", "moving_mean", "moving_variance"], [1, 1, 1], "batch_normalization"),
        (["gamma", "beta"], [1, 1], "layer_normalization"),
        (["kernel", "other"], [2, 1], "scope"),
    ],
)
def test_class_of_a_layer(names: list[str], ranks: list[int], expected: str) -> None:
    weights = {
        f"a/scope_3/{name}:0": np.zeros([2] * rank)
        for name, rank in zip(names, ranks, strict=True)
    }
    assert weight_files.layer_class("a/scope_3", weights) == expected


@pytest.mark.parametrize("name", ["w.h5", "w.weights.h5"])
def test_scope_that_is_a_part_of_another_scope(
    keras: Any, tmp_path: Path, name: str
) -> None:
    """As in the canned linear and combined Estimators; the file loads back."""
    seen: dict[str, list[Any]] = {}

    class Reads(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_end(self, logs: Any = None) -> None:
            seen["saved"] = self.model.get_weights()
            self.model.save_weights(str(tmp_path / name))
            self.model.set_weights([0 * w for w in seen["saved"]])
            self.model.load_weights(str(tmp_path / name))
            seen["loaded"] = self.model.get_weights()

    shapes = {"linear/model/x/weights": [3, 1], "linear/model/bias": [1], "vars": [2]}
    saved(Reads(), {**shapes, "linear/model/x/weights/part": [2], "layers": [1]})
    assert len(seen["saved"]) == 5
    for before, after in zip(seen["saved"], seen["loaded"], strict=True):
        np.testing.assert_array_equal(before, after)
