"""Guests whose files cannot be written are refused before training, in each host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from ramps import fit_ramp, session_ramp

import hookbridge as hb
from hookbridge import errors

v1 = tf.compat.v1
Make = Callable[[Any, Path], Any]
WRITERS: dict[str, Make] = {
    "CSVLogger": lambda c, d: c.CSVLogger(str(d / "log.csv")),
    "TensorBoard": lambda c, d: c.TensorBoard(str(d / "logs")),
    "BackupAndRestore": lambda c, d: c.BackupAndRestore(str(d / "backup")),
    "ModelCheckpoint": lambda c, d: c.ModelCheckpoint(
        str(d / "{epoch}.weights.h5"), save_weights_only=True
    ),
    "SummaryWriter": lambda c, d: hb.callbacks.SummaryWriter(
        lambda metrics: metrics, str(d / "summaries")
    ),
    "SavedModelExporter": lambda c, d: hb.callbacks.SavedModelExporter(
        str(d / "x"), model_fn=print, serving_input_fn=dict
    ),
    "ModelUploader": lambda c, d: hb.callbacks.ModelUploader(str(d / "x")),
    "CheckpointSaverHook": lambda c, d: v1.train.CheckpointSaverHook(
        str(d), save_steps=1
    ),
    "BackgroundSaverHook": lambda c, d: hb.checkpoints.BackgroundSaverHook(
        str(d), save_steps=1
    ),
    "SummarySaverHook": lambda c, d: v1.train.SummarySaverHook(
        save_steps=1, output_dir=str(d), summary_op="loss:0"
    ),
}


def in_each_host(keras: Any, guests: Callable[[], list[Any]], said: str) -> None:
    """Asserts that `fit` and a session refuse a list in which no step is made."""
    for run in (lambda made: fit_ramp(keras, made), session_ramp):
        seen: list[int] = []
        counts = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs, seen=seen: seen.append(batch)
        )
        with pytest.raises(errors.UnwritableError, match=said):
            run([*guests(), counts])
        assert seen == []


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_nobody_can_make(keras: Any, name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "below"
    in_each_host(keras, lambda: [WRITERS[name](keras.callbacks, folder)], name)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_log_in_a_folder_that_nobody_makes(keras: Any, tmp_path: Path) -> None:
    c, folder = keras.callbacks, tmp_path / "none"
    log = WRITERS["CSVLogger"]
    said = "`CSVLogger` will write .*`.*none` does not exist.* Make it first"
    beside = tmp_path / "beside"
    in_each_host(keras, lambda: [log(c, folder)], said)
    in_each_host(keras, lambda: [c.TensorBoard(str(beside)), log(c, folder)], said)
    # These make their folder too late.
    for name in ("BackupAndRestore", "ModelCheckpoint", "SummaryWriter"):
        in_each_host(keras, functools.partial(both, c, "CSVLogger", name, folder), said)


def both(c: Any, first: str, second: str, folder: Path) -> list[Any]:
    return [WRITERS[name](c, folder) for name in (first, second)]


class MakesItsFolder:
    """Makes the folder of its `CSVLogger` when the training begins."""

    filename: str

    def on_train_begin(self, logs: Any = None) -> None:
        Path(self.filename).parent.mkdir(parents=True, exist_ok=True)
        super().on_train_begin(logs)  # type: ignore[misc]


@pytest.mark.parametrize("host", ["fit", "session"])
def test_a_folder_that_a_guest_makes_in_time(
    keras: Any, host: str, tmp_path: Path
) -> None:
    c = keras.callbacks
    own = type("Own", (MakesItsFolder, c.CSVLogger), {})
    lists: list[Callable[[Path], list[Any]]] = [
        lambda folder: [own(str(folder / "log.csv"))],
        lambda folder: [c.TensorBoard(str(folder)), c.CSVLogger(f"{folder}/log.csv")],
        lambda folder: [c.CSVLogger(f"{folder}/log.csv"), c.TensorBoard(str(folder))],
    ]
    if keras.__name__ != "keras" or tf.__version__.startswith("2.15"):  # Keras 2
        lists += [
            lambda folder: [
                c.CSVLogger(f"{folder}/log.csv"),
                v1.train.CheckpointSaverHook(str(folder), save_steps=1),
            ],
            lambda folder: [
                WRITERS["ModelCheckpoint"](c, folder),
                c.CSVLogger(f"{folder}/log.csv"),
            ],
        ]
    for number, make in enumerate(lists):
        folder = tmp_path / str(number)
        guests = make(folder)
        if host == "fit":
            fit_ramp(keras, guests)
        else:
            session_ramp(guests)
        assert len((folder / "log.csv").read_text().splitlines()) == 3


def test_a_model_that_a_graph_does_not_have(keras: Any, tmp_path: Path) -> None:
    said = "`SavedModelExporter` cannot run .* give it the `model_fn` and .*model=model"
    with pytest.raises(errors.RefusedError, match=said):
        session_ramp([hb.callbacks.SavedModelExporter(str(tmp_path / "x"))])
