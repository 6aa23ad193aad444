"""Three models, as programs of TensorFlow 1 and in Keras.

The programs are references; the others are ports, with a fault if one is asked for.
`numpy_ports` has those in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1: Any = tf.compat.v1
Arrays = dict[str, Any]
STEPS, BATCH = 20, 16
L2, DECAY, CLIP, UNITS = 1e-3, 0.05, 0.1, 4


@dataclass(frozen=True)
class Settings:
    """What a training is made of; a fault is another setting."""

    optimizer: str = "adam"
    rate: Callable[[int], float] = lambda step: 0.01
    epsilon: float = 1e-8
    momentum: float = 0.9  # of the moving averages
    l2: float = 0.0
    clip: str = ""  # "norm" or "value"
    decay: str = ""  # weight decay "after" or "before" the update
    dropout: float = 0.0
    sums: bool = False


def decayed(step: int) -> float:
    return 0.01 * 0.9**step


SETTINGS = {
    "mlp": Settings(rate=decayed, l2=L2),
    "cnn": Settings(optimizer="momentum"),
    "lstm": Settings(optimizer="momentum", clip="norm"),
    "decayed mlp": Settings(optimizer="sgd", decay="after"),
}


def kind_of(name: str) -> str:
    return name.rpartition(" ")[2]


def initial(name: str) -> Arrays:
    rng = np.random.RandomState(7)
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "mlp": {"hidden/kernel": (6, 6), "hidden/bias": (6,), "out/kernel": (6, 3)},
        "cnn": {"conv/kernel": (3, 3, 1, 4), "conv/bias": (4,), "out/kernel": (64, 3)},
        "lstm": {
            "lstm/kernel": (3, 4 * UNITS),
            "lstm/recurrent_kernel": (UNITS, 4 * UNITS),
            "lstm/bias": (4 * UNITS,),
            "out/kernel": (UNITS, 3),
        },
    }
    kind = kind_of(name)
    values = {
        key: rng.normal(0.0, 1 / math.sqrt(max(shape[-2:])), shape).astype("float32")
        for key, shape in shapes[kind].items()
    }
    values["out/bias"] = np.zeros([3], np.float32)
    if kind == "cnn":
        for key, number in (("gamma", 1.0), ("beta", 0.0)):
            values[f"bn/{key}"] = np.full([4], number, np.float32)
        values["bn/moving_mean"] = np.zeros([4], np.float32)
        values["bn/moving_variance"] = np.ones([4], np.float32)
    return values


def batches(name: str) -> list[Arrays]:
    rng = np.random.RandomState(8)
    shape = {"mlp": (6,), "cnn": (6, 6, 1), "lstm": (5, 3)}[kind_of(name)]
    return [
        {
            "x": rng.normal(size=(BATCH, *shape)).astype("float32"),
            "y": rng.randint(0, 3, BATCH).astype("int32"),
        }
        for _ in range(STEPS)
    ]


# -- TensorFlow 1 ----------------------------------------------------------------------


def train_in_session(name: str, folder: Path | None, **options: Any) -> list[Any]:
    """The reference; returns the trained variables."""
    settings, data = SETTINGS[name], batches(name)
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, *data[0]["x"].shape[1:]], name="x")
        y = v1.placeholder(tf.int32, [None], name="y")
        w = {
            key: v1.get_variable(
                key, initializer=value, trainable="moving" not in key, use_resource=True
            )
            for key, value in initial(name).items()
        }
        logits = _LOGITS[kind_of(name)](x, w)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        )
        kernels = [v for key, v in w.items() if key.endswith("kernel")]
        if settings.l2:
            loss += settings.l2 * tf.add_n([tf.nn.l2_loss(v) for v in kernels])
        train_op = _train_op(settings, loss, kernels)
        hooks = [hb.recorder(folder, steps=STEPS, **options)] if folder else []
        with v1.train.MonitoredTrainingSession(hooks=hb.as_hooks(hooks)) as session:
            for batch in data:
                session.run([train_op, loss], {x: batch["x"], y: batch["y"]})
            values: list[Any] = session.run(v1.global_variables())
    return values


def _train_op(settings: Settings, loss: Any, kernels: list[Any]) -> Any:
    step = v1.train.get_or_create_global_step()
    rate: Any = 0.01
    if settings.rate is decayed:
        rate = v1.train.exponential_decay(0.01, step, 1, 0.9)
    optimizer = {
        "adam": lambda: v1.train.AdamOptimizer(rate, epsilon=settings.epsilon),
        "momentum": lambda: v1.train.MomentumOptimizer(rate, 0.9),
        "sgd": lambda: v1.train.GradientDescentOptimizer(rate),
    }[settings.optimizer]()
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    if settings.clip:
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        update = optimizer.apply_gradients(zip(gradients, variables, strict=True), step)
    if settings.decay:
        with tf.control_dependencies([update]):
            update = tf.group(*(v.assign_sub(DECAY * v.read_value()) for v in kernels))
    return update


def _mlp(x: Any, w: Arrays) -> Any:
    hidden = tf.nn.relu(x @ w["hidden/kernel"] + w["hidden/bias"])
    return hidden @ w["out/kernel"] + w["out/bias"]


def _cnn(x: Any, w: Arrays) -> Any:
    maps = tf.nn.conv2d(x, w["conv/kernel"], 1, "VALID") + w["conv/bias"]
    mean, variance = tf.nn.moments(maps, [0, 1, 2])
    for key, value in (("mean", mean), ("variance", variance)):
        moving = w[f"bn/moving_{key}"]
        v1.add_to_collection(
            v1.GraphKeys.UPDATE_OPS, moving.assign_sub((moving - value) * 0.1)
        )
    maps = tf.nn.batch_normalization(
        maps, mean, variance, w["bn/beta"], w["bn/gamma"], 1e-3
    )
    flat = tf.reshape(tf.nn.relu(maps), [-1, 64])
    return flat @ w["out/kernel"] + w["out/bias"]


def _lstm(x: Any, w: Arrays) -> Any:
    h = c = tf.zeros([tf.shape(x)[0], UNITS])
    for t in range(5):
        z = x[:, t] @ w["lstm/kernel"] + h @ w["lstm/recurrent_kernel"] + w["lstm/bias"]
        i, f, g, o = tf.split(z, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    return h @ w["out/kernel"] + w["out/bias"]


_LOGITS = {"mlp": _mlp, "cnn": _cnn, "lstm": _lstm}


# -- Keras -----------------------------------------------------------------------------


def train_in_keras(
    keras: Any, name: str, reference: Path, folder: Path, **faults: Any
) -> None:
    """A port to Keras 2 or 3, from the recorded checkpoint or by shape and order."""
    settings, layers = replace(SETTINGS[name], **faults), keras.layers
    l2 = keras.regularizers.L2(settings.l2 / 2) if settings.l2 else None
    out = layers.Dense(3, name="out", kernel_regularizer=l2)
    drop = [layers.Dropout(settings.dropout)] if settings.dropout else []
    dense = layers.Dense(6, "relu", kernel_regularizer=l2, name="hidden")
    # Keras 2's fused kernel has the variance of a sample in its moving average.
    fused = {} if keras.__version__.startswith("3") else {"fused": False}
    norm = layers.BatchNormalization(
        momentum=settings.momentum, epsilon=1e-3, name="bn", **fused
    )
    body = {
        "mlp": lambda: [dense],
        "cnn": lambda: [
            layers.Conv2D(4, 3, name="conv"),
            norm,
            layers.ReLU(),
            layers.Flatten(),
        ],
        "lstm": lambda: [layers.LSTM(UNITS, name="lstm")],
    }[kind_of(name)]()
    replay = hb.replay(reference)
    model = keras.Sequential([*body, *drop, out])
    model.build((None, *batches(name)[0]["x"].shape[1:]))
    own = {_name_of(v): v for v in model.weights}
    pairs = replay.match({n: tuple(v.shape) for n, v in own.items()}).pairs
    for key, value in replay.weights.items():
        own[pairs[key]].assign(value)
    rate: Any = 0.01
    if settings.rate is decayed:
        rate = keras.optimizers.schedules.ExponentialDecay(0.01, 1, 0.9)
    clip = {"global_clipnorm": CLIP} if settings.clip == "norm" else {}
    if settings.clip == "value":
        clip = {"clipvalue": 0.02}
    if settings.optimizer == "adam":
        optimizer = keras.optimizers.Adam(rate, epsilon=settings.epsilon, **clip)
    else:
        optimizer = keras.optimizers.SGD(rate, momentum=0.9, **clip)
    reduction = "sum" if settings.sums else "sum_over_batch_size"
    loss = keras.losses.SparseCategoricalCrossentropy(True, reduction=reduction)
    model.compile(optimizer, loss)
    callbacks = hb.as_callbacks([hb.recorder(folder, steps=STEPS)])
    model.fit(replay.dataset(), verbose=0, shuffle=False, callbacks=callbacks)


def _name_of(variable: Any) -> str:
    return str(getattr(variable, "path", None) or variable.name)
