"""Ports of the four programs, each with any of its mistakes.

One text for all frameworks: `F` has what a port calls of its framework.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import hookbridge as hb

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Port:
    """A port; a mistake is another value of a field."""

    program: str
    optimizer: str
    options: dict[str, Any]
    rate: Callable[[int], float]
    records_rate: bool = True
    factor: str = "mean"  # or what is summed: "all" or "examples"
    l2: dict[str, float] = field(default_factory=dict)
    decay: dict[str, float] = field(default_factory=dict)  # in the optimizer
    clip: tuple[str, float] = ("", 0.0)
    pad_before: int = 0  # of stride 2
    slope: float = 0.2
    tied: bool = True
    channels_first: bool = False
    gates: str = "ijfo"
    forget_bias: float = 1.0
    masked: bool = True
    smoothing: float = 0.0
    epsilon: float = 1e-3  # of the normalization
    trains: bool = True  # whether the normalization takes the batch's mean
    momentum: float = 0.9  # of the moving averages
    unbiased: bool = False
    shifted: bool = False  # labels


def _dense_l2(names: tuple[str, ...], amount: float) -> dict[str, float]:
    return dict.fromkeys(names, amount)


KERNELS = (
    "conv/kernel",
    "policy/conv/kernel",
    "policy/dense/kernel",
    "value/dense/kernel",
)
RIGHT = {
    "autoencoder": Port(
        "autoencoder",
        "adam",
        {"beta2": 0.9},
        lambda n: 0.01 * 0.8 ** (n // 2),
    ),
    "policy": Port(
        "policy",
        "sgd",
        {"momentum": 0.9},
        lambda n: 0.05 if n <= 1 else 0.03 if n <= 3 else 0.01,
        l2=_dense_l2(KERNELS, 0.01),
    ),
    "lstm": Port(
        "lstm",
        "adam",
        {},
        lambda n: 0.05 * 0.5 ** (n // 3),
        clip=("global norm", 0.15),
    ),
    "normalized": Port("normalized", "adagrad", {"initial": 0.1}, lambda n: 0.1),
}

# The same programs, all of them trained by Adam.
RIGHT_WITH_ADAM = {
    name: port
    if port.optimizer == "adam"
    else replace(port, optimizer="adam", options={})
    for name, port in RIGHT.items()
}


def train(port: Port, reference: Path, folder: Path, F: Any) -> None:
    """Trains the port on the recorded batches, and records it."""
    replay = hb.replay(reference)
    arrays = {name: np.array(value) for name, value in replay.weights.items()}
    if not port.tied:
        for name in ("conv1", "conv2"):
            arrays[f"de{name}/kernel"] = arrays[f"{name}/kernel"].copy()
    trained = [name for name in arrays if "moving" not in name]
    optimizer = F.optimizer(port, {name: arrays[name] for name in trained})
    with hb.recording(folder, arrays) as r:
        for n, batch in enumerate(replay.batches):
            seen = dict(batch)
            if port.shifted:
                batch["y"] = seen["y"] = np.roll(batch["y"], 1)
            w = {name: optimizer.variables[name] for name in trained}
            w |= {n: F.array(v) for n, v in arrays.items() if n not in w}
            loss, moments = MODELS[port.program](port, batch, w, F)
            for name, amount in port.l2.items():
                loss = loss + 0.5 * amount * F.sum(w[name] * w[name])
            found = F.gradients(loss, {name: w[name] for name in trained})
            optimizer.step(found, port.rate(n))
            for name, value in moments.items():
                old = arrays[name]
                arrays[name] = old * port.momentum + value * (1 - port.momentum)
            arrays = {name: np.array(v, "float32") for name, v in arrays.items()}
            arrays |= {n: np.array(v) for n, v in optimizer.arrays().items()}
            r.step(
                loss=float(F.numpy(loss)),
                weights=arrays,
                gradients={name: F.numpy(g) for name, g in found.items()},
                batch=seen,
                learning_rate=np.float32(port.rate(n)) if port.records_rate else None,
            )


def _padded(x: Any, before: int, after: int, F: Any) -> Any:
    """Zeros around a picture."""
    for axis in (1, 2):
        parts = []
        for size in (before, after):
            shape = list(x.shape)
            shape[axis] = size
            parts.append(F.array(np.zeros(shape, "float32")))
        x = F.concat([parts[0], x, parts[1]], axis)
    return x


def _conv(x: Any, kernel: Any, stride: int, before: int, F: Any) -> Any:
    size = kernel.shape[0]
    height = x.shape[1] // stride
    x = _padded(x, before, size, F)
    out: Any = 0.0
    for i in range(size):
        for j in range(size):
            end = stride * height
            part = x[:, i : i + end : stride, j : j + end : stride]
            out = out + part @ kernel[i, j]
    return out


def _transposed_conv(x: Any, kernel: Any, before: int, F: Any) -> Any:
    n, height, width, _ = x.shape
    out: Any = 0.0
    for i in range(3):
        for j in range(3):
            part = x @ F.transpose(kernel[i, j], (1, 0))
            zeros = F.array(np.zeros(part.shape, "float32"))
            channels = part.shape[-1]
            part = F.reshape(
                F.concat([part, zeros], 3), (n, height, 2 * width, channels)
            )
            zeros = F.array(np.zeros(part.shape, "float32"))
            part = F.reshape(
                F.concat([part, zeros], 2), (n, 2 * height, 2 * width, channels)
            )
            part = _padded(part, 2, 2, F)
            rows, columns = 2 - i + before, 2 - j + before
            out = out + part[:, rows : rows + 2 * height, columns : columns + 2 * width]
    return out


def _autoencoder(port: Port, batch: Arrays, w: Arrays, F: Any) -> Any:
    x = F.array(batch["images"])
    before = port.pad_before
    back = {n: w.get(f"de{n}", w[n]) for n in ("conv1/kernel", "conv2/kernel")}
    h = _conv(x, w["conv1/kernel"], 2, before, F) + w["conv1/bias"]
    h = F.leaky(h, port.slope)
    h = F.leaky(_conv(h, w["conv2/kernel"], 2, before, F) + w["conv2/bias"], port.slope)
    h = _transposed_conv(h, back["conv2/kernel"], before, F) + w["deconv2/bias"]
    h = F.leaky(h, port.slope)
    h = _transposed_conv(h, back["conv1/kernel"], before, F) + w["deconv1/bias"]
    difference = F.sigmoid(h) - x
    size = {"mean": x.shape[0] * 64, "examples": x.shape[0], "all": 1}[port.factor]
    return F.sum(difference * difference) * (1 / size), {}


def _policy(port: Port, batch: Arrays, w: Arrays, F: Any) -> Any:
    x = F.array(batch["boards"])

    def flat(y: Any) -> Any:
        if port.channels_first:
            y = F.transpose(y, (0, 3, 1, 2))
        return F.reshape(y, (y.shape[0], math.prod(y.shape[1:])))

    h = F.relu(
        _conv(_padded(x, 1, 0, F)[:, :5, :5], w["conv/kernel"], 1, 0, F)[:, :4, :4]
        + w["conv/bias"]
    )
    p = F.relu(h @ w["policy/conv/kernel"][0, 0] + w["policy/conv/bias"])
    logits = flat(p) @ w["policy/dense/kernel"] + w["policy/dense/bias"]
    v = F.tanh(flat(h) @ w["value/dense/kernel"] + w["value/dense/bias"])[:, 0]
    far = v - F.array(batch["rewards"])
    entropy = -F.sum(F.array(batch["probabilities"]) * _log_softmax(logits, F))
    size = 1 if port.factor == "all" else x.shape[0]
    return (entropy + F.sum(far * far)) * (1 / size), {}


def _log_softmax(logits: Any, F: Any) -> Any:
    return logits - F.log(F.sum(F.exp(logits), 1, True))


def _cross_entropy(logits: Any, labels: Any, port: Port, F: Any) -> Any:
    classes = logits.shape[1]
    target = np.eye(classes, dtype="float32")[labels] * (1 - port.smoothing)
    target = (target + port.smoothing / classes).astype("float32")
    size = 1 if port.factor == "all" else len(labels)
    return -F.sum(F.array(target) * _log_softmax(logits, F)) * (1 / size)


def _lstm(port: Port, batch: Arrays, w: Arrays, F: Any) -> Any:
    x, units = batch["words"], 4
    h = c = F.array(np.zeros((len(x), units), "float32"))
    for t in range(x.shape[1]):
        z = F.concat([F.array(x[:, t]), h], 1) @ w["rnn/kernel"] + w["rnn/bias"]
        gate = {
            name: z[:, n * units : (n + 1) * units] for n, name in enumerate(port.gates)
        }
        new_c = F.sigmoid(gate["f"] + port.forget_bias) * c
        new_c = new_c + F.sigmoid(gate["i"]) * F.tanh(gate["j"])
        new_h = F.sigmoid(gate["o"]) * F.tanh(new_c)
        is_in = (t < batch["lengths"]).astype("float32")[:, None]
        if not port.masked:
            is_in = np.ones_like(is_in)
        c = F.array(is_in) * new_c + F.array(1 - is_in) * c
        h = F.array(is_in) * new_h + F.array(1 - is_in) * h
    logits = h @ w["out/kernel"] + w["out/bias"]
    return _cross_entropy(logits, batch["labels"], port, F), {}


def _normalized(port: Port, batch: Arrays, w: Arrays, F: Any) -> Any:
    h = F.array(batch["x"]) @ w["hidden/kernel"]
    count = h.shape[0]
    mean = F.sum(h, 0, True) * (1 / count)
    variance = F.sum((h - mean) * (h - mean), 0, True) * (1 / count)
    moments = {
        "bn/moving_mean": F.numpy(mean)[0],
        "bn/moving_variance": F.numpy(variance)[0],
    }
    if port.unbiased:
        sample = moments["bn/moving_variance"] * count / (count - 1)
        moments["bn/moving_variance"] = sample
    if not port.trains:
        mean, variance = w["bn/moving_mean"], w["bn/moving_variance"]
    normal = (h - mean) / F.sqrt(variance + port.epsilon)
    h = F.relu(normal * w["bn/gamma"] + w["bn/beta"])
    logits = h @ w["out/kernel"] + w["out/bias"]
    return _cross_entropy(logits, batch["y"], port, F), moments


MODELS = {
    "autoencoder": _autoencoder,
    "policy": _policy,
    "lstm": _lstm,
    "normalized": _normalized,
}


def clipped(found: Arrays, clip: tuple[str, float]) -> Arrays:
    kind, limit = clip
    norms = {name: np.sqrt((g**2).sum()) for name, g in found.items()}
    if kind == "value":
        return {name: np.clip(g, -limit, limit) for name, g in found.items()}
    if kind == "global norm":
        norms = dict.fromkeys(found, math.hypot(*norms.values()))
    if kind:
        return {n: g * min(1.0, limit / norms[n]) for n, g in found.items()}
    return found


class NumPyOptimizer:
    """Optimizers as TensorFlow 1 has them."""

    def __init__(self, port: Port, arrays: Arrays, array: Any) -> None:
        self._port, self._array = port, array
        self._values = {n: v.astype("float64") for n, v in arrays.items()}
        first = port.options.get("initial", 0.0)
        self._slots = {n: (0.0 * v, first + 0.0 * v) for n, v in self._values.items()}
        self._count = 0

    @property
    def variables(self) -> Arrays:
        return {name: self._array(value) for name, value in self._values.items()}

    def arrays(self) -> Arrays:
        return {name: v.astype("float32") for name, v in self._values.items()}

    def step(self, found: Arrays, rate: float) -> None:
        port, options = self._port, self._port.options
        self._count += 1
        for name, g in clipped(found, port.clip).items():
            w, (m, v) = self._values[name], self._slots[name]
            g = g + options.get("l2", 0.0) * w
            if port.optimizer == "sgd":
                m = options["momentum"] * m + g
                ahead = g + options["momentum"] * m
                change = ahead if options.get("nesterov") else m
            elif port.optimizer == "adagrad":
                v = v + g * g
                change = g / (np.sqrt(v) + 1e-10)
            else:
                change, m, v = self._adam(name, g, m, v)
            self._slots[name] = m, v
            w = w - rate * change - rate * port.decay.get(name, 0.0) * w
            self._values[name] = w.astype("float32").astype("float64")

    def _adam(self, name: str, g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
        options = self._port.options
        beta1, beta2 = options.get("beta1", 0.9), options.get("beta2", 0.999)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        largest = v
        if options.get("amsgrad"):
            self._largest = getattr(self, "_largest", {})
            largest = np.maximum(self._largest.get(name, v), v)
            self._largest[name] = largest
        scale = math.sqrt(1 - beta2**self._count) / (1 - beta1**self._count)
        change = scale * m / (np.sqrt(largest) + options.get("epsilon", 1e-8))
        return change, m, v
