"""What the user sees of a training: its progress, its curves and its summary."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hookbridge import compat
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.callbacks.progress import Progress
from hookbridge.report.account import accounts
from hookbridge.report.run_report import FILE_NAME, RunReport
from hookbridge.report.tables import Run
from hookbridge.training.part import Part
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


def report(settings: TrainingSettings, facts: Mapping[str, float]) -> RunReport:
    """The page with the curves of a training, and what its guests saw."""
    folder = Path(settings.model_dir)
    shown = {name.replace("_", " "): f"{value:.6g}" for name, value in facts.items()}
    loop = str(settings.loop)
    return RunReport(
        title=f"Training of {os.path.basename(settings.model_def)}",
        summary=f"It ended at step {facts['global_step']:.0f}, after "
        f"{facts['seconds']:.1f} seconds.",
        runs=[Run(loop, f"--loop={loop}", folder, accounts(folder), shown)],
        versions=compat.installed_versions(),
        settings={name: str(value) for name, value in asdict(settings).items()},
    )


def summary(part: Part, facts: Mapping[str, float]) -> str:
    """The last message of a training, which says where its files are."""
    settings, step, secs = part.settings, facts["global_step"], facts["seconds"]
    exported = part.params["saved_model_path"]
    places = {
        "checkpoint": part.checkpoint(),
        "TensorBoard": f"tensorboard --logdir {settings.model_dir}",
        "report": os.path.join(settings.model_dir, FILE_NAME),
        "SavedModel": exported if os.path.isdir(exported) else None,
    }
    lines = [f"trained to step {step:.0f} with --loop={settings.loop} in {secs:.1f} s"]
    lines += [f"  {name:<12} {place}" for name, place in places.items() if place]
    for mode, rows in part.inputs.skipped.items():
        if rows:
            lines.append(f"  skipped      {len(rows)} rows of the data of `{mode}`")
    return "\n".join(lines)
