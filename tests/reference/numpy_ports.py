"""Ports of the models of ported_models to NumPy, with a fault if one is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ported_models import (
    BATCH,
    CLIP,
    DECAY,
    SETTINGS,
    UNITS,
    Arrays,
    Settings,
    kind_of,
)

import hookbridge as hb


def train_in_numpy(
    name: str,
    reference: Path,
    folder: Path,
    *,
    weights: Mapping[str, Any] | None = None,
    data: list[Arrays] | None = None,
    **faults: Any,
) -> None:
    """A port on the recorded batches, or others, with the faults as settings."""
    settings = replace(SETTINGS[name], **faults)
    replay = hb.replay(reference)
    w = {k: v.astype("float64") for k, v in (weights or replay.weights).items()}
    rng, slots = np.random.RandomState(0), {k: [0.0 * v, 0.0 * v] for k, v in w.items()}
    facts = {"class": settings.optimizer, "epsilon": settings.epsilon}
    with hb.recording(folder, _float32(w), optimizer=facts) as r:
        for step, batch in enumerate(data or replay.batches):
            keep = 1.0 - settings.dropout
            mask = (rng.rand(BATCH, w["out/kernel"].shape[0]) < keep) / keep
            features, back = FORWARD[kind_of(name)](batch["x"].astype("float64"), w)
            features = features * mask
            losses, dlogits = _cross_entropy(
                features @ w["out/kernel"] + w["out/bias"], batch["y"]
            )
            size = 1 if settings.sums else BATCH
            dlogits /= size
            loss = losses.sum() / size
            g = back(dlogits @ w["out/kernel"].T * mask)
            g["out/kernel"], g["out/bias"] = features.T @ dlogits, dlogits.sum(0)
            moving = {k: g.pop(k) for k in list(g) if "moving" in k}
            for key in (k for k in g if k.endswith("kernel")):
                loss += settings.l2 * (w[key] ** 2).sum() / 2
                g[key] = g[key] + settings.l2 * w[key]
            rate = settings.rate(step)
            _update(settings, w, g, slots, rate, step + 1)
            for key, value in moving.items():
                w[key] = w[key] + (value - w[key]) * (1 - settings.momentum)
            w = {k: v.astype("float32").astype("float64") for k, v in w.items()}
            r.step(
                loss=loss,
                weights=_float32(w),
                gradients=g,
                batch=batch,
                learning_rate=np.float32(rate),
            )


def _float32(w: Arrays) -> Arrays:
    return {k: v.astype("float32") for k, v in w.items()}


def _update(
    settings: Settings, w: Arrays, g: Arrays, slots: Any, rate: float, count: int
) -> None:
    if settings.clip == "norm":
        whole = math.sqrt(sum((each**2).sum() for each in g.values()))
        g = {k: each * min(1.0, CLIP / whole) for k, each in g.items()}
    elif settings.clip:
        g = {k: np.clip(each, -0.02, 0.02) for k, each in g.items()}
    for key, each in g.items():
        decays = settings.decay if key.endswith("kernel") else ""
        if decays == "before":
            w[key] = w[key] * (1 - DECAY)
        if settings.optimizer == "adam":
            m, v = slots[key]
            slots[key] = m, v = 0.9 * m + 0.1 * each, 0.999 * v + 0.001 * each**2
            scale = math.sqrt(1 - 0.999**count) / (1 - 0.9**count)
            w[key] = w[key] - rate * scale * m / (np.sqrt(v) + settings.epsilon)
        else:
            keep = 0.9 if settings.optimizer == "momentum" else 0.0
            slots[key] = keep * slots[key][0] + each, 0.0
            w[key] = w[key] - rate * slots[key][0]
        if decays == "after":
            w[key] = w[key] * (1 - DECAY)


def _cross_entropy(logits: Any, y: Any) -> tuple[Any, Any]:
    """The loss of each example, and the gradient of their sum."""
    logits = logits - logits.max(1, keepdims=True)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    rows = np.arange(len(y))
    d = p.copy()
    d[rows, y] -= 1
    return -np.log(p[rows, y]), d


def _numpy_mlp(x: Any, w: Arrays) -> tuple[Any, Callable[[Any], Arrays]]:
    h = np.maximum(x @ w["hidden/kernel"] + w["hidden/bias"], 0.0)

    def back(d: Any) -> Arrays:
        d = d * (h > 0)
        return {"hidden/kernel": x.T @ d, "hidden/bias": d.sum(0)}

    return h, back


def _numpy_cnn(x: Any, w: Arrays) -> tuple[Any, Callable[[Any], Arrays]]:
    patches = np.lib.stride_tricks.sliding_window_view(x[..., 0], (3, 3), axis=(1, 2))
    patches = patches.reshape(len(x), 4, 4, 9)
    maps = patches @ w["conv/kernel"].reshape(9, 4) + w["conv/bias"]
    axes = (0, 1, 2)
    mean, variance = maps.mean(axes), maps.var(axes)
    scale = 1 / np.sqrt(variance + 1e-3)
    normal = (maps - mean) * scale
    a = np.maximum(normal * w["bn/gamma"] + w["bn/beta"], 0.0)

    def back(d: Any) -> Arrays:
        d = d.reshape(a.shape) * (a > 0)
        g = {"bn/gamma": (d * normal).sum(axes), "bn/beta": d.sum(axes)}
        d = d * w["bn/gamma"]
        d = scale * (d - d.mean(axes) - normal * (d * normal).mean(axes))
        kernel = np.einsum("nhwi,nhwo->io", patches, d)
        g["conv/kernel"], g["conv/bias"] = kernel.reshape(3, 3, 1, 4), d.sum(axes)
        return {**g, "bn/moving_mean": mean, "bn/moving_variance": variance}

    return a.reshape(len(x), 64), back


def _numpy_lstm(x: Any, w: Arrays) -> tuple[Any, Callable[[Any], Arrays]]:
    def sigmoid(z: Any) -> Any:
        return 1 / (1 + np.exp(-z))

    h = c = np.zeros([len(x), UNITS])
    past = []
    for t in range(5):
        z = x[:, t] @ w["lstm/kernel"] + h @ w["lstm/recurrent_kernel"] + w["lstm/bias"]
        i, f, g, o = np.split(z, 4, 1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        past.append((x[:, t], h, c, i, f, g, o))
        c = f * c + i * g
        h = o * np.tanh(c)

    def back(dh: Any) -> Arrays:
        names = ("kernel", "recurrent_kernel", "bias")
        total = {f"lstm/{name}": 0.0 * w[f"lstm/{name}"] for name in names}
        dc, after = np.zeros_like(dh), c
        for x_t, h_t, c_t, i, f, g, o in reversed(past):
            tanh = np.tanh(after)
            dc = dc + dh * o * (1 - tanh**2)
            parts = [dc * g * i * (1 - i), dc * c_t * f * (1 - f)]
            parts += [dc * i * (1 - g**2), dh * tanh * o * (1 - o)]
            dz = np.concatenate(parts, 1)
            for name, value in zip(names, (x_t.T, h_t.T, None), strict=True):
                total[f"lstm/{name}"] += dz.sum(0) if value is None else value @ dz
            dh, dc, after = dz @ w["lstm/recurrent_kernel"].T, dc * f, c_t
        return total

    return h, back


FORWARD = {"mlp": _numpy_mlp, "cnn": _numpy_cnn, "lstm": _numpy_lstm}
