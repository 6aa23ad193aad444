"""Eager Keras 2 models work in callbacks although graphs are built in between."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from estimator_models import (
    KERAS2,
    MODEL,
    STEPS,
    X,
    estimators,
    eval_input,
    keras_model_fn,
    train_input,
)

import hookbridge as hb


def _guest(keras: Any, seen: list[str], evaluates: bool) -> Any:
    """Uses its model and an eager model of its own in every event."""
    keras2 = importlib.import_module(KERAS2)
    own = keras2.Sequential([keras2.layers.Dense(2, input_shape=(2,))])

    class Uses(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def use(self, event: str) -> None:
            assert self.model.predict(X).shape == (4 * STEPS, 1)
            assert self.model(X).shape == (4 * STEPS, 1)
            (layer,) = self.model.layers
            assert layer(X).shape == (4 * STEPS, 1)
            assert own(X).shape == (4 * STEPS, 2)
            assert own.predict(X, verbose=0).shape == (4 * STEPS, 2)
            seen.append(event)

        def on_train_begin(self, logs: Any = None) -> None:
            self.use("on_train_begin")

        def on_test_end(self, logs: Any = None) -> None:
            self.use("on_test_end")

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if evaluates:
                self.model.evaluate()
            self.use("on_epoch_end")

        def on_train_end(self, logs: Any = None) -> None:
            self.use("on_train_end")

    return Uses()


@pytest.mark.parametrize("evaluates", [False, True], ids=["at the end", "by itself"])
def test_after_a_validation_by_an_estimator(
    keras: Any, tmp_path: Path, evaluates: bool
) -> None:
    seen: list[str] = []
    estimator = estimators.Estimator(keras_model_fn, str(tmp_path))
    hooks = hb.as_hooks(
        _guest(keras, seen, evaluates),
        steps_per_epoch=STEPS,
        epochs=2,
        model=lambda: MODEL["model"],
        validation=(estimator, estimators.EvalSpec(eval_input, steps=2)),
    )
    estimator.train(train_input, hooks=hooks)
    assert seen.count("on_epoch_end") == 2
    assert seen[-1] == "on_train_end"


def test_under_train_and_evaluate(keras: Any, tmp_path: Path) -> None:
    seen: list[str] = []
    config = estimators.RunConfig(str(tmp_path), save_checkpoints_steps=STEPS)
    hooks = hb.as_hooks(
        _guest(keras, seen, False), steps_per_epoch=STEPS, model=lambda: MODEL["model"]
    )
    estimators.train_and_evaluate(
        estimators.Estimator(keras_model_fn, config=config),
        estimators.TrainSpec(train_input, max_steps=3 * STEPS, hooks=hooks),
        estimators.EvalSpec(eval_input, steps=2, throttle_secs=0, start_delay_secs=0),
    )
    assert seen.count("on_epoch_end") == 3
    assert seen[-1] == "on_train_end"
