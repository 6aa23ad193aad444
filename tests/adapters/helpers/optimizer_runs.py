"""Trainings with every optimizer of a Keras, natively and with hooks.

`python optimizer_runs.py KERAS FOLDER CASE...` goes on from the checkpoints that
another process has written, and prints the weights as JSON: `{case: weights}`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1: Any = tf.compat.v1
train: Any = v1.train

STEPS, FIRST_PART = 8, 5  # the second step of three epochs of three steps ends a part
EPOCH = 3
RATE, OTHER_RATE = 0.05, 0.2
X = np.random.RandomState(0).randn(8, 3).astype("float32")
Y = X @ np.array([[1, 0], [-2, 1], [0.5, 3]], "float32")

# Those that update by others, are abstract, or are no optimizers.
_OTHERS = ("Optimizer", "OptimizerMap", "LossScaleOptimizer")
WAYS = ("plain", "scheduled", "scaled", "accumulated", "ema", "averaged")


def all_cases(keras: Any) -> list[str]:
    """`way:optimizer` of all that a Keras exports, such as `scaled:legacy.Adam`."""
    names = _names(keras.optimizers)
    if hasattr(keras.optimizers, "legacy") and _is_keras2(keras):
        names += [f"legacy.{name}" for name in _names(keras.optimizers.legacy)]
    if _is_keras2(keras):  # which wraps those of TensorFlow 1
        names += [f"v1.{n}" for n in dir(train) if _is_of_v1(n)]
    return [f"{w}:{n}" for n in names for w in WAYS if _exists(keras, w, n)]


def _names(module: Any) -> list[str]:
    names = [n for n in dir(module) if isinstance(getattr(module, n), type)]
    return [n for n in names if n[0].isupper() and n not in _OTHERS]


def _is_of_v1(name: str) -> bool:
    """Whether it is an optimizer of TensorFlow 1 for one process and dense weights."""
    of_others = ("SyncReplicasOptimizer", "AdagradDAOptimizer")
    return name.endswith("Optimizer") and name not in ("Optimizer", *of_others)


def _is_keras2(keras: Any) -> bool:
    return str(keras.__version__).startswith("2")


def _exists(keras: Any, way: str, name: str) -> bool:
    """Whether the optimizer can be had in that way."""
    if name == "MultiOptimizer" or name.startswith("v1."):
        return way == "plain"
    if way == "accumulated":
        return not _is_keras2(keras)
    if name == "legacy.Nadam" and way == "scheduled":
        return False
    return not (name.startswith("legacy.") and way in ("ema", "averaged"))


def optimizer(keras: Any, case: str, rate: Any = None) -> Any:
    """A new optimizer of a case, with its own rate or a given constant one."""
    way, name = case.split(":")
    is_constant = rate is not None or way not in ("scheduled", "accumulated")
    rate = RATE if rate is None else rate
    if not is_constant:
        rate = keras.optimizers.schedules.ExponentialDecay(RATE, 2, 0.5)
    ways: dict[str, dict[str, Any]] = {
        "accumulated": {"gradient_accumulation_steps": 2},
        "ema": {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 3},
        "averaged": {"use_ema": True, "ema_momentum": 0.8},
    }
    options = ways.get(way, {})
    if name == "MultiOptimizer":
        adam, sgd = keras.optimizers.Adam(rate), keras.optimizers.SGD(rate, 0.9)
        optimizers = keras.optimizers.OptimizerMap(adam, {".*bias": sgd})
        return keras.optimizers.MultiOptimizer(optimizers)
    if name.startswith("v1."):
        options = {"momentum": 0.9} if "Momentum" in name else {}
        return getattr(train, name.removeprefix("v1."))(rate, **options)
    module = keras.optimizers
    if name.startswith("legacy."):
        module, name = keras.optimizers.legacy, name.partition(".")[2]
    if name in ("SGD", "RMSprop"):
        options["momentum"] = 0.9
    result = getattr(module, name)(rate, **options)
    if way != "scaled":
        return result
    home = keras.mixed_precision if _is_keras2(keras) else keras.optimizers
    options = {"initial_scale": 64.0, "dynamic_growth_steps": 3}
    return home.LossScaleOptimizer(result, **options)


def model_of(keras: Any, case: str, rate: float | None = None) -> Any:
    """A new model, compiled with the optimizer of a case; see `optimizer`."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(4, activation="tanh", name="hidden")]
    layers += [keras.layers.Dense(2, name="outputs")]
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.compile(optimizer(keras, case, rate), "mse")
    return model


def fit(model: Any, *guests: Any, steps: int = STEPS, begin: int = 0) -> list[float]:
    """Trains in epochs of three steps, always on the same batch."""
    data = tf.data.Dataset.from_tensors((X, Y)).repeat()
    model.fit(
        data,
        epochs=begin + -(-steps // EPOCH),
        initial_epoch=begin,
        steps_per_epoch=EPOCH,
        verbose=0,
        callbacks=hb.as_callbacks([*guests, train.StopAtStepHook(num_steps=steps)]),
    )
    return weights(model)


def weights(model: Any) -> list[float]:
    """All weights of a model, in one list."""
    return [float(v) for w in model.get_weights() for v in np.ravel(w)]


def save_first_part(keras: Any, case: str, folder: str) -> None:
    """Trains up to the middle of an epoch, with a checkpoint."""
    saver = train.CheckpointSaverHook(path_of(folder, case), save_steps=FIRST_PART)
    fit(model_of(keras, case), saver, steps=FIRST_PART)


def go_on(keras: Any, case: str, folder: str) -> list[float]:
    """Restores the checkpoint of the first part and trains the rest."""
    model = model_of(keras, case)
    report = hb.checkpoints.restore(model, path_of(folder, case))
    assert report.global_step == FIRST_PART, report
    saver = train.CheckpointSaverHook(path_of(folder, case) + "_2", save_steps=100)
    return fit(model, saver, steps=STEPS - FIRST_PART, begin=FIRST_PART // EPOCH)


def path_of(folder: str, case: str) -> str:
    return os.path.join(folder, case.replace(":", "_"))


def main(flavour: str, folder: str, cases: Sequence[str]) -> None:
    keras = importlib.import_module(flavour)
    results = {case: go_on(keras, case, folder) for case in cases}
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
