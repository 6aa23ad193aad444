"""Sorts recorded events into the moments of a run, the same for both loops."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from hookbridge.demo.loop_run import LoopRun


class Moment(NamedTuple):
    """A place on the common time line.

    Attributes:
      part: `"start"`, `"first"` epoch, epochs in the `"middle"`, `"last"` epoch or
        `"end"`.
      what: what happens there, for example `"before"` a step.
      step: which step of the epoch: `"1"`, `"2"`, `"last"`, or `""`.
    """

    part: str
    what: str
    step: str = ""


@dataclass(frozen=True)
class Column:
    """One column of the picture.

    Attributes:
      moment: what falls into it.
      label: what the header says.
      counted: whether many events fall into it, so that their number is shown.
    """

    moment: Moment
    label: str
    counted: bool = False


def columns(runs: list[LoopRun]) -> list[Column]:
    """The columns that these runs need, in order."""
    found = [
        Column(Moment("start", "set_up"), "set up"),
        Column(Moment("start", "begin"), "training begins"),
        *_epoch("first", "epoch 1", runs),
    ]
    if max(run.epochs for run in runs) > 2:
        found.append(Column(Moment("middle", ""), "epochs between", counted=True))
    if max(run.epochs for run in runs) > 1:
        found += _epoch("last", "last epoch", runs)
    return [*found, Column(Moment("end", "end"), "training ends")]


def _epoch(part: str, name: str, runs: list[LoopRun]) -> list[Column]:
    steps = max(run.steps_per_epoch for run in runs)
    found = [Column(Moment(part, "epoch_begin"), f"{name} begins")]
    early = [str(n) for n in (1, 2) if n < steps] if part == "first" else []
    for step in early:
        found.append(Column(Moment(part, "before", step), f"before step {step}"))
        found.append(Column(Moment(part, "after", step), f"after step {step}"))
    if steps > len(early) + 1:
        found.append(Column(Moment(part, "between"), "steps between", counted=True))
    return [
        *found,
        Column(Moment(part, "before", "last"), "before its last step"),
        Column(Moment(part, "after", "last"), "after its last step"),
        Column(Moment(part, "validation"), "validation", counted=True),
        Column(Moment(part, "epoch_end"), f"{name} ends"),
    ]


def count_moments(run: LoopRun, name: str) -> Counter[Moment]:
    """How many events the guest `name` received at each moment of `run`."""
    counts: Counter[Moment] = Counter()
    steps = epochs = 0  # begun, and ended, as this guest has seen it
    for event, number in run.log.of(name):
        if event in ("before_run", "on_train_batch_begin"):
            counts[_step(run, steps, "before")] += 1
        elif event in ("after_run", "on_train_batch_end"):
            counts[_step(run, steps, "after")] += 1
            steps += 1
        elif event.startswith("on_test"):
            counts[_in_epoch(run, epochs, "validation")] += 1
        elif event == "on_epoch_begin":
            counts[_in_epoch(run, number or 0, "epoch_begin")] += 1
        elif event == "on_epoch_end":
            counts[_in_epoch(run, number or 0, "epoch_end")] += 1
            epochs += 1
        elif event in ("end", "on_train_end"):
            counts[Moment("end", "end")] += 1
        elif event in ("after_create_session", "on_train_begin"):
            counts[Moment("start", "begin")] += 1
        else:
            counts[Moment("start", "set_up")] += 1
    return counts


def _in_epoch(run: LoopRun, epoch: int, what: str, step: str = "") -> Moment:
    if epoch == 0:
        return Moment("first", what, step)
    if epoch == run.epochs - 1:
        return Moment("last", what, step)
    return Moment("middle", "")


def _step(run: LoopRun, step: int, what: str) -> Moment:
    epoch, position = divmod(step, run.steps_per_epoch)
    if position == run.steps_per_epoch - 1 or step == run.steps - 1:
        return _in_epoch(run, epoch, what, "last")
    if epoch == 0 and position < 2:
        return Moment("first", what, str(position + 1))
    return _in_epoch(run, epoch, "between")
