"""The progress of a loop as one line of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Standing:
    """The progress of a loop.

    Attributes:
      loop: "train", "evaluate" or "predict".
      step: training steps of the model so far, or batches of this loop.
      last_step: the step at which it ends; None if that is not known.
      epoch: the epoch, from 1; None if the loop has none.
      epochs: how many epochs are planned; None if that is not known.
      values: loss and metrics by name.
      steps_per_sec: over the run, without its first step; None before the second.
      batch_size: examples in a step; None if that is not known.
    """

    loop: str
    step: int
    last_step: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    steps_per_sec: float | None = None
    batch_size: int | None = None


def progress_line(standing: Standing) -> str:
    """The line; what is not known is left out."""
    parts = [] if standing.loop == "train" else [standing.loop]
    if standing.epoch is not None:
        parts.append(f"epoch {_of(standing.epoch, standing.epochs)}")
    word = "step" if standing.loop == "train" else "batch"
    parts.append(f"{word} {_of(standing.step, standing.last_step)}")
    rate = standing.steps_per_sec
    if rate is not None:
        size = standing.batch_size
        unit = "examples/s" if size else "steps/s"
        parts.append(f"{rate * (size or 1):.4g} {unit}")
        if standing.last_step is not None and standing.last_step > standing.step:
            parts.append(f"{clock((standing.last_step - standing.step) / rate)} left")
    # The values are last: a terminal may be too narrow for all of them.
    names = sorted(standing.values, key=lambda name: name != "loss")
    parts += [f"{name} {standing.values[name]:.4g}" for name in names]
    return "  ".join(parts)


def clock(secs: float) -> str:
    """Seconds as `0:07`, `12:30` or `3:05:00`."""
    minutes, seconds = divmod(round(secs), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _of(number: int, last: int | None) -> str:
    return str(number) if last is None else f"{number}/{last}"
