"""Where a training run is between two training steps, or within one.

A table says what each event makes of each phase. `TrainingRun` asks it, and acts. Which
epoch it is in, and whether one is open, is not a phase: `EpochClock` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

# "unknown": before the next step the run looks where the session is.
# "in epoch": the next step follows the last one in the same epoch.
# "in batch": a batch has begun; between two runs this means that it failed.
# "gradients waiting": a batch has begun; its gradients were handed over, and are not
# applied yet.
# "update first", "update next": an update without a step runs, and came when the phase
# was "unknown" or "in epoch".
Phase = Literal[
    "unknown",
    "in epoch",
    "in batch",
    "gradients waiting",
    "update first",
    "update next",
]

# "session": a session begins, the first one or that of a recovery.
# "run": a run of the session begins, whatever it does.
# "found": the run has looked where the session is.
# "step", "update": the run that begins is a step, or an update without one.
# "waiting": the step that ends did not move the global step.
# "moved": the step that ends moved it; its callbacks may raise, or end the epoch.
# "epoch goes on": they did not, and the next step is in the same epoch.
# "updated": the update has ended.
# "end": the session ends.
Event = Literal[
    "session",
    "run",
    "found",
    "step",
    "update",
    "waiting",
    "moved",
    "epoch goes on",
    "updated",
    "end",
]

_ALL: tuple[Phase, ...] = get_args(Phase)


def _row(changes: Mapping[Phase, Phase]) -> dict[Phase, Phase]:
    """Return the phase after an event, for each phase; it stays unless it changes."""
    return {phase: changes.get(phase, phase) for phase in _ALL}


# `AFTER[event][phase]` is the phase of a run after an event.
AFTER: Mapping[Event, Mapping[Phase, Phase]] = {
    "session": dict.fromkeys(_ALL, "unknown"),
    "run": _row({"update first": "in batch", "update next": "in batch"}),
    "found": _row({"in batch": "unknown"}),
    "step": dict.fromkeys(_ALL, "in batch"),
    "update": _row({"unknown": "update first", "in epoch": "update next"}),
    "waiting": _row({"in batch": "gradients waiting"}),
    "moved": _row({"in batch": "unknown"}),
    "epoch goes on": _row({"unknown": "in epoch"}),
    "updated": _row({"update first": "unknown", "update next": "in epoch"}),
    "end": dict.fromkeys(_ALL, "unknown"),
}


def is_update(phase: Phase) -> bool:
    """Return whether the run of the session is an update without a step."""
    return phase in ("update first", "update next")


def has_failed(phase: Phase) -> bool:
    """Return whether the last run of the session has raised, between two runs."""
    return phase == "in batch" or is_update(phase)
