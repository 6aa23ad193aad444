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
_UPDATES: tuple[Phase, ...] = ("update first", "update next")


def _row(**after: Phase) -> dict[Phase, Phase]:
    """Return what an event makes of each phase; without a word of it, the phase stays.

    Args:
      **after: the next phase by the present one, whose blanks are underscores.
    """
    words = {name.replace("_", " "): phase for name, phase in after.items()}
    return {phase: words.get(phase, phase) for phase in _ALL}


# `AFTER[event][phase]` is the phase of a run after an event.
AFTER: Mapping[Event, Mapping[Phase, Phase]] = {
    "session": dict.fromkeys(_ALL, "look"),
    "run": _row(update_first="open", update_next="open"),
    "found": _row(open="look"),
    "step": dict.fromkeys(_ALL, "open"),
    "update": _row(look="update first", follow="update next"),
    "waiting": _row(open="wait"),
    "moved": _row(open="look"),
    "epoch goes on": _row(look="follow"),
    "updated": _row(update_first="look", update_next="follow"),
    "end": dict.fromkeys(_ALL, "look"),
}


def is_update(phase: Phase) -> bool:
    """Return whether the run of the session is an update without a step."""
    return phase in _UPDATES


def has_failed(phase: Phase) -> bool:
    """Whether, between two runs of the session, the last one has raised."""
    return phase == "open" or is_update(phase)
