"""What the guests of one process saw and cost, recorded and kept as a file."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hookbridge import lifecycle
from hookbridge.adapters.guests import kinds, roles
from hookbridge.adapters.guests.record import Guest, record_of
from hookbridge.profiling import profile
from hookbridge.report.timeline import Timeline
from hookbridge.testing.event_log import EventLog
from hookbridge.testing.spying import spy, unspy

# The folder beside the curves with one file for each process.
FOLDER = "processes"


@dataclass(frozen=True)
class GuestFacts:
    """A guest as it was recorded.

    Attributes:
      kind: "hook" or "callback".
      role: which processes call it.
      runs_here: whether its role lets this process call it.
      overridden: its own methods that a loop can call.
      delivered: those that its role does not leave to other processes.
    """

    kind: lifecycle.Guest
    role: str
    runs_here: bool
    overridden: list[str]
    delivered: list[str]


@dataclass(frozen=True)
class Account:
    """The guests of one process: what they are, saw and cost.

    Attributes:
      process: its name, such as "worker 0".
      is_chief: whether its results are those of the run.
      facts: `{what: number}`, the results.
      guests: `{name: what it is}`, in their order.
      timeline: every event.
      profile: calls and times, as `hb.profile` counts them.
    """

    process: str
    is_chief: bool
    facts: Mapping[str, float]
    guests: Mapping[str, GuestFacts]
    timeline: Timeline
    profile: Mapping[str, Any]

    def events(self, guest: str) -> list[tuple[str, int | None]]:
        """The `(event, number)` that a guest received, in order."""
        place = list(self.timeline.guests).index(guest)
        return [(e.name, e.number) for e in self.timeline.events if e.guest == place]

    def counts(self, guest: str) -> dict[str, int]:
        """How often a guest received each event."""
        return dict(Counter(event for event, _ in self.events(guest)))

    def save(self, directory: str | Path) -> None:
        """Writes the account below the directory of its run."""
        folder = Path(directory) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.process.replace(' ', '_')}.json"
        path.write_text(json.dumps(finite(asdict(self))) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Account:
        """Reads what `save` wrote."""
        held = json.loads(path.read_text(encoding="utf-8"))
        held["guests"] = {k: GuestFacts(**v) for k, v in held["guests"].items()}
        held["timeline"] = Timeline.from_json(held["timeline"])
        return cls(**held)


def accounts(directory: str | Path) -> list[Account]:
    """The accounts of all processes of a run, the chief's first."""
    files = sorted((Path(directory) / FOLDER).glob("*.json"))
    return sorted(map(Account.load, files), key=lambda each: not each.is_chief)


class Recorder:
    """Follows guests from now on until `account`.

    Args:
      guests: hooks and callbacks, in their order.
    """

    def __init__(self, guests: Any) -> None:
        self._started = time.time()
        self._log = EventLog()
        self._guests: dict[str, Guest] = {}
        for item in kinds.flatten(guests):
            guest = record_of(item)
            name = guest.name
            same = [known for known in self._guests if known.partition(" ")[0] == name]
            name = f"{name} {len(same) + 1}" if same else name
            spy(guest.item, self._log, name)
            self._guests[name] = guest
        self._profile = profile([guest.item for guest in self._guests.values()])

    def account(
        self, process: str, facts: Mapping[str, float], *, is_chief: bool = True
    ) -> Account:
        """Ends the recording, and returns what was recorded.

        Args:
          process: the name of this process.
          facts: the results.
          is_chief: whether the results are those of the run.
        """
        self._profile.stop()
        for guest in self._guests.values():
            unspy(guest.item)
        return Account(
            process,
            is_chief,
            dict(facts),
            {name: _facts(guest) for name, guest in self._guests.items()},
            Timeline.of(process, self._started, self._guests, self._log.to_json()),
            self._profile.timings.as_dict(),
        )


def _facts(guest: Guest) -> GuestFacts:
    found = [
        event
        for event in lifecycle.overridden(guest.item, guest.kind)
        if event not in lifecycle.ALIASES
    ]
    return GuestFacts(
        guest.kind,
        guest.role,
        roles.runs_here(guest.role),
        found,
        [event for event in found if roles.delivers(guest.role, event)],
    )


def finite(value: Any) -> Any:
    """A value for JSON, in which NaN and infinity are None: JSON has neither."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
