"""Keras 3's own `fit` on JAX and PyTorch is recorded by one callback."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import errors
from hookbridge.reference.recordings.recording_files import Recording

ONE_TENSORFLOW = True
v1 = tf.compat.v1

BACKENDS = [n for n in ("jax", "torch") if importlib.util.find_spec(n) is not None]

PORT = """
import sys
import keras
import hookbridge as hb
from hookbridge import errors

layers = keras.layers
class Own(keras.Sequential):
    def train_step(self, *args):
        return super().train_step(*args)

def compiled_model(kind, **options):
    model = kind([
        keras.Input([4]),
        layers.Dense(
            6, "relu", kernel_regularizer=keras.regularizers.L2(0.01), name="h"
        ),
        layers.BatchNormalization(momentum=0.9, epsilon=1e-3, name="bn"),
        layers.Dense(1, name="out"),
    ])
    model.compile(keras.optimizers.Adam(0.01, global_clipnorm=0.5), "mse", **options)
    return model

reference, model = hb.replay(sys.argv[1]), compiled_model(keras.Sequential)
reference.restore(model)
data = lambda: ((b["x"], b["y"]) for b in reference.batches)
steps = len(reference)
with hb.recording(sys.argv[2], model) as r:
    model.fit(data(), steps_per_epoch=steps, verbose=0, callbacks=[r.keras_callback()])
model.fit(data(), steps_per_epoch=steps, verbose=0)  # and is not recorded
for kind, options, told in [
    (Own, {}, "Own.train_step"),
    (keras.Sequential, {"steps_per_execution": 2}, "2 steps"),
]:
    other = compiled_model(kind, **options)
    with hb.recording(sys.argv[2] + told[:3], other) as r:
        try:
            callbacks = [r.keras_callback()]
            other.fit(data(), steps_per_epoch=2, verbose=0, callbacks=callbacks)
        except (errors.RefusedError, ValueError) as e:
            # Keras itself refuses several steps on PyTorch.
            assert told in str(e) or "must be 1 with the PyTorch" in str(e), e
        else:
            raise AssertionError("not refused")
assert "tensorflow" not in sys.modules
"""


def record(folder: Path) -> None:
    """A session with what the port has: l2, a normalization, clipped Adam."""
    rng = np.random.RandomState(0)
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 4], "x")
        y = v1.placeholder(tf.float32, [None, 1], "y")
        kernel = v1.get_variable("h/kernel", [4, 6])
        h = tf.nn.relu(x @ kernel + v1.get_variable("h/bias", [6]))
        mean, variance = tf.nn.moments(h, [0])
        for name, value in (("mean", mean), ("variance", variance)):
            first = float(name == "variance") * tf.ones([6])
            moving = v1.get_variable(
                f"bn/moving_{name}", initializer=first, trainable=False
            )
            update = moving.assign_sub((moving - value) * (1 - 0.9))
            v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
        beta = v1.get_variable("bn/beta", initializer=tf.zeros([6]))
        gamma = v1.get_variable("bn/gamma", initializer=tf.ones([6]))
        h = tf.nn.batch_normalization(h, mean, variance, beta, gamma, 1e-3)
        out = h @ v1.get_variable("out/kernel", [6, 1])
        out += v1.get_variable("out/bias", [1])
        loss = tf.reduce_mean((out - y) ** 2) + 0.02 * tf.nn.l2_loss(kernel)
        optimizer = v1.train.AdamOptimizer(0.01, epsilon=1e-7)
        pairs = optimizer.compute_gradients(loss)
        found, _ = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
        updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(updates):
            step = v1.train.get_or_create_global_step()
            train_op = optimizer.apply_gradients(
                zip(found, [v for _, v in pairs], strict=True), step
            )
        with v1.train.MonitoredTrainingSession(hooks=[hb.recorder(folder)]) as session:
            for _ in range(5):
                data = {x: rng.randn(8, 4), y: rng.randn(8, 1)}
                session.run(train_op, data)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS or [None])
def test_fit_on_another_backend(
    backend: str | None, tmp_path: Path, repo_root: Path
) -> None:
    """Where it is installed: the right port is the same, in all layers."""
    if backend is None:
        pytest.skip("neither JAX nor PyTorch is installed")
    record(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-c", PORT, str(tmp_path / "run"), str(tmp_path / "port")],
        cwd=repo_root,
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = hb.compare(tmp_path / "run", tmp_path / "port")
    assert result.is_same, str(result)
    assert all(layer.measures for layer in result.layers), str(result)
    steps = Recording(tmp_path / "port").steps
    kernel = result.matching.pairs["h/kernel"]
    assert len(steps) == 5 and steps[4].arrays("gradients")[kernel].any()


def test_other_recordings_have_no_keras_callback(tmp_path: Path) -> None:
    recording = hb.recording(tmp_path / "run", {"w": np.ones(2)})
    with pytest.raises(errors.InvalidArgumentError, match=r"hb\.recorder\(directory"):
        recording.keras_callback()
