"""Where a training run is between two training steps, or within one.

A table says what each event makes of each phase. `TrainingRun` asks it, and acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

# "look": before the next step the run looks where the session is.
# "follow": the next step follows the last one in the same epoch.
# "open": a batch has begun; between two runs this means that it failed.
# "wait": a batch has begun; its gradients were handed over and not applied yet.
# "update first", "update next": an update without a step runs, and came when the phase
# was "look" or "follow".
Phase = Literal["look", "follow", "open", "wait", "update first", "update next"]

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

_ALL: tuple[Phase, ...] = (
    "look",
    "follow",
    "open",
    "wait",
    "update first",
    "update next",
)
_FAILED: dict[Phase, Phase] = {"update first": "open", "update next": "open"}

# What is not here leaves the phase as it is.
_NEXT: Mapping[Event, Mapping[Phase, Phase]] = {
    "session": dict.fromkeys(_ALL, "look"),
    "run": _FAILED,
    "found": {"open": "look"},
    "step": dict.fromkeys(_ALL, "open"),
    "update": {"look": "update first", "follow": "update next"},
    "waiting": {"open": "wait"},
    "moved": {"open": "look"},
    "epoch goes on": {"look": "follow"},
    "updated": {"update first": "look", "update next": "follow"},
    "end": dict.fromkeys(_ALL, "look"),
}


def next_phase(phase: Phase, event: Event) -> Phase:
    """Return the phase of a run after an event."""
    return _NEXT[event].get(phase, phase)


def is_update(phase: Phase) -> bool:
    """Whether the run of the session is an update without a step."""
    return phase in _FAILED


def has_failed(phase: Phase) -> bool:
    """Whether, between two runs of the session, the last one has raised."""
    return phase == "open" or is_update(phase)
