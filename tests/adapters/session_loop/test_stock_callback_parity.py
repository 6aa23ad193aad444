"""Each stock callback does in a session loop what it does in `Model.fit`."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from callback_loops import assert_same, fit, session_loop

Make = Callable[[Any, Path], Any]

# Name -> (makes the callback of a Keras in a folder, further options of both runs).
CASES: dict[str, tuple[Make, dict[str, Any]]] = {
    "none": (lambda k, d: k.callbacks.Callback(), {}),
    "early_stopping": (
        lambda k, d: k.callbacks.EarlyStopping("val_loss", patience=1),
        {"epochs": 30, "rate": 0.3},
    ),
    "early_stopping_restores_best": (
        lambda k, d: k.callbacks.EarlyStopping(
            "val_mae", patience=2, restore_best_weights=True, mode="min"
        ),
        {"epochs": 30, "rate": 0.3},
    ),
    "early_stopping_baseline": (
        lambda k, d: k.callbacks.EarlyStopping("loss", baseline=1e-3, patience=2),
        {"epochs": 10, "rate": 0.01},
    ),
    "early_stopping_start_from_epoch": (
        lambda k, d: k.callbacks.EarlyStopping(
            "loss", min_delta=10.0, start_from_epoch=2
        ),
        {"epochs": 10},
    ),
    "early_stopping_without_stop_restores": (
        lambda k, d: k.callbacks.EarlyStopping(
            "val_loss", patience=50, restore_best_weights=True
        ),
        {"epochs": 6, "rate": 0.3},
    ),
    "reduce_lr_on_plateau": (
        lambda k, d: k.callbacks.ReduceLROnPlateau(
            "loss", factor=0.5, patience=1, min_delta=1.0, min_lr=0.02, cooldown=1
        ),
        {"epochs": 9},
    ),
    "learning_rate_scheduler": (
        lambda k, d: k.callbacks.LearningRateScheduler(
            lambda epoch, lr: lr * 0.5 if epoch else lr
        ),
        {},
    ),
    "learning_rate_scheduler_epoch_only": (
        lambda k, d: k.callbacks.LearningRateScheduler(lambda epoch: 0.2 / (1 + epoch)),
        {},
    ),
    "terminate_on_nan": (
        lambda k, d: k.callbacks.TerminateOnNaN(),
        {"rate": 1e30, "epochs": 4},
    ),
    "csv_logger": (lambda k, d: k.callbacks.CSVLogger(str(d / "log.csv")), {}),
    "history": (lambda k, d: k.callbacks.History(), {}),
    "lambda": (
        lambda k, d: k.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: logs.update(double=2 * logs["loss"])
        ),
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_same_as_in_fit(keras: Any, case: str, tmp_path: Path) -> None:
    make, options = CASES[case]
    folders = {name: tmp_path / name for name in ("fit", "session")}
    for folder in folders.values():
        folder.mkdir()
    native = fit(keras, [make(keras, folders["fit"])], **options)
    bridged = session_loop([make(keras, folders["session"])], **options)
    if case == "terminate_on_nan":
        assert bridged.steps == native.steps < 12
        assert math.isnan(bridged.history["loss"][-1]) == math.isnan(
            native.history["loss"][-1]
        )
        return
    assert_same(bridged, native)
    if case == "csv_logger":
        rows = {
            n: list(csv.DictReader((f / "log.csv").open())) for n, f in folders.items()
        }
        assert list(rows["session"][0]) == list(rows["fit"][0])
        for ours, theirs in zip(rows["session"], rows["fit"], strict=True):
            assert [float(v) for v in ours.values()] == pytest.approx(
                [float(v) for v in theirs.values()], rel=2e-5
            )


def test_several_callbacks_act_on_each_other_as_in_fit(
    keras: Any, tmp_path: Path
) -> None:
    def make(folder: Path) -> list[Any]:
        c = keras.callbacks
        return [
            c.LearningRateScheduler(lambda epoch, lr: lr * 0.9),
            c.ReduceLROnPlateau("val_loss", patience=1, min_delta=0.05, factor=0.5),
            c.EarlyStopping("val_loss", patience=3, restore_best_weights=True),
            c.CSVLogger(str(folder / "log.csv")),
        ]

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    native = fit(keras, make(tmp_path / "a"), epochs=40)
    bridged = session_loop(make(tmp_path / "b"), epochs=40)
    assert_same(bridged, native)
    assert len(native.history["loss"]) < 40
    header = [(tmp_path / n / "log.csv").read_text().splitlines()[0] for n in "ab"]
    assert header[0] == header[1]
