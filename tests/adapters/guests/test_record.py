"""What the record of a guest says, before any loop has begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests.record import record_of

train: Any = tf.compat.v1.train


class NamesInCode(train.SessionRunHook):  # type: ignore[misc]
    """Has a name in its code and one in an attribute."""

    def __init__(self) -> None:
        self.names = {"more": ["hidden/Relu:0"]}

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs("loss:0")


class Quiet(train.SessionRunHook):  # type: ignore[misc]
    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.text = "no name"


@pytest.mark.parametrize(
    ("make", "names", "may_fetch_loss"),
    [
        (NamesInCode, {"loss:0", "hidden/Relu:0"}, True),
        (Quiet, set(), False),
        (lambda: train.LoggingTensorHook(["a:0"], every_n_iter=1), {"a:0"}, True),
        (lambda: train.NanTensorHook("loss:0"), {"loss:0"}, True),
        (lambda: train.StopAtStepHook(last_step=2), set(), False),
    ],
)
def test_what_a_hook_may_fetch(
    make: Any, names: set[str], may_fetch_loss: bool
) -> None:
    record = record_of(make())
    assert record.fetched_names == names
    assert record.may_fetch_loss == may_fetch_loss


def test_where_guests_write(keras: Any, tmp_path: Path) -> None:
    callbacks, folder = keras.callbacks, str(tmp_path)
    for guest, expected in (
        (train.CheckpointSaverHook(folder, save_steps=1), [(folder, True)]),
        (Quiet(), []),
        (callbacks.TensorBoard(folder), [(folder, True)]),
        (callbacks.CSVLogger(f"{folder}/a.csv"), [(f"{folder}/a.csv", False)]),
        (
            callbacks.ModelCheckpoint(f"{folder}/a.keras"),
            [(f"{folder}/a.keras", False)],
        ),
        (callbacks.EarlyStopping("loss"), []),
    ):
        assert record_of(guest).writes == expected
    with pytest.raises(errors.UnwritableError, match="does not exist"):
        record_of(callbacks.CSVLogger(f"{folder}/none/a.csv")).writes  # noqa: B018
