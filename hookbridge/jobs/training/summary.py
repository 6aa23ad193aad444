"""What the user sees of a training: progress, curves, and how it has ended."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.kinds import name_of
from hookbridge.adapters.state import restart_line
from hookbridge.ground.texts import live_lines
from hookbridge.ground.texts.counted import counted
from hookbridge.insight.report.account import accounts
from hookbridge.insight.report.run_report import FILE_NAME, Run, RunReport, as_words
from hookbridge.jobs.callbacks.progress import Progress
from hookbridge.jobs.data.bad_rows import tidied
from hookbridge.jobs.loops.towers.spec import PREDICT
from hookbridge.jobs.training import user_file
from hookbridge.jobs.training.job_process import JobProcess
from hookbridge.jobs.training.training_settings import TrainingSettings

_FULL = ("No space left on device", "File too large", "Disk quota exceeded")


class _HookLines(logging.Handler):
    """Prints warnings, restarts and `LoggingTensorHook`, over the progress."""

    def __init__(self, to_stderr: bool) -> None:
        super().__init__()
        self._to_stderr = to_stderr

    def emit(self, record: logging.LogRecord) -> None:
        if record.module == "deprecation":
            return  # TensorFlow marks most of the session API as deprecated
        source = "LoggingTensorHook"
        if record.levelno >= logging.WARNING:
            source = record.levelname.lower()
        elif record.funcName == restart_line.RECORDED_AS:
            source = "info"
        elif record.funcName != "_log_tensors":
            return
        stream = sys.stderr if self._to_stderr else sys.stdout
        over = live_lines.CLEAR if stream.isatty() and sys.stderr.isatty() else ""
        print(f"{over}  {source}: {record.getMessage()}", file=stream, flush=True)


@contextlib.contextmanager
def hook_lines(*, to_stderr: bool) -> Iterator[None]:
    """Show the lines of `LoggingTensorHook`; TensorFlow hides them by default."""
    logger = tf.get_logger()
    before = (logger.level, logger.propagate, list(logger.handlers))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [_HookLines(to_stderr)]
    try:
        yield
    finally:
        level, logger.propagate, logger.handlers = before
        logger.setLevel(level)  # also clears the logger's cache of enabled levels


def progress_callbacks(
    keras: Any,
    settings: TrainingSettings,
    last_step: int | None,
    guests: Sequence[Any] = (),
) -> list[Any]:
    """Return the callbacks that show progress: a line of text and TensorBoard.

    TensorBoard shows runs side by side if their `model_dir`s are in one folder.
    """
    callbacks: list[Any] = [Progress(last_step=last_step)] if settings.progress else []
    has_board = any(name_of(guest) == "TensorBoard" for guest in guests)
    if importlib.util.find_spec("tensorboard") is not None and not has_board:
        folder = os.path.join(settings.model_dir, "tensorboard")
        board = keras.callbacks.TensorBoard
        callbacks.append(board(folder, write_graph=False, profile_batch=0))
    return callbacks


def report(settings: TrainingSettings, facts: Mapping[str, float]) -> RunReport:
    """Return the page with the curves of a training, and what its guests saw."""
    folder = Path(settings.model_dir)
    shown = {name.replace("_", " "): f"{value:.6g}" for name, value in facts.items()}
    loop = str(settings.loop)
    return RunReport(
        title=f"Training of {os.path.basename(settings.model_def)}",
        summary=f"It ended at step {facts['global_step']:.0f}, after "
        f"{facts['seconds']:.1f} seconds.",
        runs=[Run(loop, f"--loop={loop}", folder, accounts(folder), shown)],
        settings=as_words(asdict(settings)),
    )


def summary(
    process: JobProcess, facts: Mapping[str, float], before: int, last_step: int | None
) -> str:
    """Return the last message of a training, which says where its files are.

    Args:
      process: this process of the job.
      facts: the global step at the end, and the seconds.
      before: the global step at the start.
      last_step: the global step at which the flags end the training, if they do.
    """
    settings = process.settings
    exported = process.params["saved_model_path"]
    places = {
        "checkpoint": process.checkpoint(),
        "TensorBoard": f"tensorboard --logdir {settings.model_dir}",
        "report": os.path.join(settings.model_dir, FILE_NAME),
        "SavedModel": exported if os.path.isdir(exported) else None,
    }
    lines = [_outcome(settings, facts, before, last_step)]
    lines += [f"  {name:<12} {path}" for name, path in places.items() if path]
    for mode, rows in process.inputs.skipped.items():
        if rows:
            lines.append(
                f"  skipped      {counted(len(rows), 'row')} of the data of `{mode}`"
            )
    return "\n".join(lines)


def _outcome(
    settings: TrainingSettings,
    facts: Mapping[str, float],
    before: int,
    last_step: int | None,
) -> str:
    """Return what a training did; that nothing was left, if that is so."""
    step = int(facts["global_step"])
    if last_step is not None and before >= last_step:
        return (
            f"nothing was left to train: {settings.model_dir} is at step {step}, and "
            f"the training ends at step {last_step}. Give larger --epochs or "
            "--train_steps, or another --model_dir."
        )
    since = f" (from step {before})" if before else ""
    loop, secs = settings.loop, facts["seconds"]
    return f"trained to step {step}{since} with --loop={loop} in {secs:.1f} s"


def interruption(process: JobProcess, step: int | None) -> str:
    """Return the message of a training that Ctrl-C has ended.

    Args:
      process: this process of the job.
      step: the global step at which it stopped; None if this process cannot know it.
    """
    at = "" if step is None else f" after step {step}"
    path, saved = process.checkpoint(), process.global_step()
    if path is None:
        outcome = "Nothing is saved yet: the same command begins again at step 0."
    else:
        outcome = f"{path} is saved: the same command goes on from step {saved}."
    return f"hookbridge: train: interrupted{at}. {outcome}"


def failure(process: JobProcess, error: BaseException, mode: str, command: str) -> str:
    """Return the message about an error; name the row, the disk, or the file's line."""
    prefix, file = f"hookbridge: {command}: ", process.settings.model_def
    text = str(getattr(error, "message", None) or error)
    path = tf.train.latest_checkpoint(process.settings.model_dir)
    saved = f"The last whole checkpoint is {path}." if path else "No checkpoint yet."
    if any(sign in text for sign in _FULL):
        return (
            f"{prefix}--model_dir={process.settings.model_dir} cannot be written: "
            f"no space is left there. {saved}"
        )
    if type(error).__name__ == "NanLossDuringTrainingError":
        loss = "loss" if process.definition.is_keras else "model_fn"
        return (
            f"{prefix}{process.definition.where(loss)} became NaN. {saved} Lower the "
            "learning rate, or look for logarithms and divisions of 0."
        )
    lines = user_file.message_of(file, error, command).splitlines()
    if isinstance(error, tf.errors.OpError):
        row = _bad_row(process, mode)
        if row is not None:
            header = row.number == 1 and not process.settings.header_lines
            way = (
                "If it is a header, --header_lines=1 leaves it out; " if header else ""
            )
            return f"{prefix}{row} {way}--bad_rows=skip goes on without such rows."
        at = next((i for i, x in enumerate(lines) if x.startswith(prefix)), 0)
        lines[at:] = [f"{prefix}{type(error).__name__}: {tidied(text)}"]
    return "\n".join(lines)


def _bad_row(process: JobProcess, mode: str) -> Any:
    """Return the first row that cannot be read, or whose loss fails."""
    row = process.inputs.bad_row(mode)
    if row is not None or mode == PREDICT or not process.definition.is_keras:
        return row
    model = process.model(process.inputs.function(mode)())
    return process.inputs.bad_row(
        mode, lambda features, labels: process.definition.loss(labels, model(features))
    )
