"""Each stock guest does through hookbridge what it does natively.

A row has the guests of a list, and options of both runs. Events, history, weights, log
lines, files and the errors of both loops are compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest
from observed import arrays, callbacks_seen, compared, differences, hooks_seen
from one_keras import one_keras

LONG = {"epochs": 30, "rate": 0.3}
CSV = "k.callbacks.CSVLogger(str(folder / 'log.csv'))"
LOSSES = "{'loss': 'loss:0', 'rate': 'learning_rate:0'}"


def early_stopping(arguments: str) -> str:
    return f"k.callbacks.EarlyStopping({arguments})"


def model_checkpoint(name: str, arguments: str = "save_freq='epoch'") -> str:
    path = f"str(folder / '{name}.weights.h5')"
    return f"k.callbacks.ModelCheckpoint({path}, save_weights_only=True, {arguments})"


BEST = "save_best_only=True, monitor="
CALLBACKS: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    ([early_stopping("'val_loss', patience=1")], LONG),
    (
        [
            early_stopping(
                "'val_mae', patience=2, restore_best_weights=True, mode='min'"
            )
        ],
        LONG,
    ),
    ([early_stopping("'loss', baseline=1e-3, patience=2")], {"epochs": 9, "rate": 0.1}),
    ([early_stopping("'loss', min_delta=10.0, start_from_epoch=2")], {"epochs": 9}),
    (
        [
            "k.callbacks.ReduceLROnPlateau('loss', factor=0.5, patience=1, "
            "min_delta=1.0, min_lr=0.02, cooldown=1)"
        ],
        {"epochs": 9},
    ),
    (["k.callbacks.LearningRateScheduler(lambda epoch: 0.2 / (1 + epoch))"], {}),
    (["k.callbacks.TerminateOnNaN()"], {"rate": 1e30, "epochs": 4}),
    (
        [
            "k.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: "
            "logs.update(double=2 * logs['loss']))",
            CSV,
            "k.callbacks.History()",
        ],
        {},
    ),
    (
        [
            "k.callbacks.LearningRateScheduler(lambda epoch, lr: float(lr) * 0.9)",
            "k.callbacks.ReduceLROnPlateau('val_loss', patience=1, min_delta=0.05)",
            early_stopping("'val_loss', patience=3, restore_best_weights=True"),
            CSV,
        ],
        {"epochs": 40},
    ),
    (
        [
            model_checkpoint("all{epoch}"),
            model_checkpoint("loss{epoch}", f"{BEST}'val_loss'"),
            model_checkpoint("w{epoch}-{mae:.3f}", f"{BEST}'mae', mode='max'"),
            model_checkpoint("w{epoch}", f"{BEST}'loss', initial_value_threshold=1.0"),
        ],
        {"epochs": 5},
    ),
]
FED = "train.FeedFnHook(lambda: {{'learning_rate:0': {}}})".format
NAN = "train.NanTensorHook('loss:0', fail_on_nan_loss={})".format
HOOKS = [
    [],
    ["train.StopAtStepHook(num_steps=4)"],
    ["train.StopAtStepHook(last_step=7)"],
    [FED("1e30"), NAN(True)],
    [FED("1e30"), NAN(False)],
    [FED("0.05")],
    [
        f"train.LoggingTensorHook({LOSSES}, every_n_iter=5)",
        NAN(True),
        "train.CheckpointSaverHook(str(folder / 'saved'), save_steps=5)",
        "train.StepCounterHook(every_n_steps=5, output_dir=str(folder / 'rate'))",
        "hb.in_begin(G.summaries(str(folder / 'loss'), 4))",
        "hb.in_begin(lambda: train.FinalOpsHook(train.get_global_step() + 0))",
        "train.GlobalStepWaiterHook(0)",
    ],
]


@one_keras
@pytest.mark.parametrize("row", range(len(CALLBACKS)))
def test_a_callback_does_in_a_session_what_it_does_in_fit(keras: Any, row: int) -> None:
    codes, options = CALLBACKS[row]
    assert compared(callbacks_seen, codes, keras, options) == []


@one_keras
@pytest.mark.parametrize("row", range(len(HOOKS)))
def test_a_hook_does_in_fit_what_it_does_in_a_session(keras: Any, row: int) -> None:
    assert compared(hooks_seen, HOOKS[row], keras, {}) == []


def test_the_comparison_sees_swapped_weights_of_one_shape(tmp_path: Path) -> None:
    path = tmp_path / "weights.h5"
    seen = []
    for place, values in (("layers", (1, 2)), ("other/layers", (1, 2)), ("", (2, 1))):
        with h5py.File(path, "w") as file:
            for number, value in enumerate(values):
                file[f"{place}/dense/vars/{number}"] = [value]
        seen.append(arrays(path))
    assert differences(seen[0], seen[1]) == []
    assert len(differences(seen[0], seen[2])) == 2
