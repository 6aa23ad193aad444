"""What the user sees of a training: its progress, its curves and its summary."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.callbacks.progress import Progress
from hookbridge.data.bad_rows import BadRow
from hookbridge.report.account import accounts
from hookbridge.report.run_report import FILE_NAME, RunReport
from hookbridge.report.tables import Run
from hookbridge.training.settings import TrainingSettings


def watchers(
    keras: Any,
    settings: TrainingSettings,
    last_step: int | None,
    guests: Sequence[Any] = (),
) -> list[Any]:
    """The callbacks that show progress in each loop: a line of text and TensorBoard.

    TensorBoard shows runs side by side if their `model_dir`s are in one folder.
    """
    found: list[Any] = [Progress(last_step=last_step)] if settings.progress else []
    has_board = any(name_of(guest) == "TensorBoard" for guest in guests)
    if importlib.util.find_spec("tensorboard") is not None and not has_board:
        folder = os.path.join(settings.model_dir, "tensorboard")
        board = keras.callbacks.TensorBoard
        found.append(board(folder, write_graph=False, profile_batch=0))
    return found


def run_of(settings: TrainingSettings, facts: Mapping[str, float]) -> Run:
    """A training for a report, with the accounts of its processes, if there are any."""
    loop = str(settings.loop)
    folder = Path(settings.model_dir)
    shown = {name.replace("_", " "): f"{value:.6g}" for name, value in facts.items()}
    return Run(loop, f"--loop={loop}", folder, accounts(folder), shown)


def report(settings: TrainingSettings, facts: Mapping[str, float]) -> RunReport:
    """The page with the curves of a training, and what its guests saw."""
    step, secs = facts["global_step"], facts["seconds"]
    return RunReport(
        title=f"Training of {os.path.basename(settings.model_def)}",
        summary=f"It ended at step {step}, after {secs:.1f} seconds.",
        runs=[run_of(settings, facts)],
        versions=compat.installed_versions(),
        settings={name: str(value) for name, value in asdict(settings).items()},
    )


def summary(
    settings: TrainingSettings,
    step: int,
    secs: float,
    params: Mapping[str, object],
    skipped: Mapping[str, list[BadRow]],
) -> str:
    """The last message of a training, which says where its files are."""
    lines = [f"trained to step {step} with --loop={settings.loop} in {secs:.1f} s"]
    checkpoint = tf.train.latest_checkpoint(settings.model_dir)
    places = {
        "checkpoint": checkpoint,
        "TensorBoard": f"tensorboard --logdir {settings.model_dir}",
        "report": os.path.join(settings.model_dir, FILE_NAME),
        "SavedModel": params.get("saved_model_path"),
    }
    exported = str(places["SavedModel"])
    if not os.path.isdir(exported):
        del places["SavedModel"]
    lines += [f"  {name:<12} {place}" for name, place in places.items() if place]
    for mode, rows in skipped.items():
        if rows:
            lines.append(f"  skipped      {len(rows)} rows of the data of `{mode}`")
    return "\n".join(lines)
