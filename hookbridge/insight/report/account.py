"""What the guests of one process saw and cost, recorded and kept as a file."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hookbridge.adapters.guests import kinds, roles
from hookbridge.adapters.guests.guest_record import Guest, record_of
from hookbridge.ground import lifecycle
from hookbridge.insight.guest_profile import profile
from hookbridge.testing.event_log import EventLog
from hookbridge.testing.spying import spy, unspy

# The folder beside the curves with one file for each process.
_FOLDER = "processes"


@dataclass(frozen=True)
class GuestFacts:
    """A guest as it was recorded: what it is, and which of its own methods are called.

    A role may leave some of those that it overrides to other processes.
    """

    kind: lifecycle.Kind
    role: str
    runs_here: bool
    overridden: list[str]
    delivered: list[str]


class EventCall(NamedTuple):
    """One event: the guest's place, the event's name and number, when it began."""

    guest: int
    name: str
    number: int | None
    secs: float


@dataclass(frozen=True)
class Account:
    """The guests of one process: what they are, saw and cost.

    `facts` are the results as numbers, `profile` is that of `hb.profile`, and `started`
    is the time, in seconds of Unix time, at which `secs` of the `calls` is 0.
    """

    process: str
    is_chief: bool
    facts: Mapping[str, float]
    guests: Mapping[str, GuestFacts]
    started: float
    calls: Sequence[EventCall]
    profile: Mapping[str, Any]

    def events(self, guest: str) -> list[tuple[str, int | None]]:
        """Return the `(event, number)` that a guest received, in order."""
        number = list(self.guests).index(guest)
        return [(call.name, call.number) for call in self.calls if call.guest == number]

    def counts(self, guest: str) -> Counter[str]:
        """Return how often a guest received each event."""
        return Counter(event for event, _ in self.events(guest))

    def save(self, directory: str | Path) -> None:
        """Write the account below the directory of its run."""
        folder = Path(directory) / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.process.replace(' ', '_')}.json"
        path.write_text(json.dumps(finite(asdict(self))) + "\n", encoding="utf-8")


def accounts(directory: str | Path) -> list[Account]:
    """Return the accounts of all processes of a run, the chief's first."""
    result = []
    for file in sorted((Path(directory) / _FOLDER).glob("*.json")):
        fields = json.loads(file.read_text(encoding="utf-8"))
        fields["guests"] = {k: GuestFacts(**v) for k, v in fields["guests"].items()}
        fields["calls"] = [EventCall(*call) for call in fields["calls"]]
        result.append(Account(**fields))
    return sorted(result, key=lambda each: not each.is_chief)


class AccountRecorder:
    """Follows guests from now on until `account`."""

    def __init__(self, guests: object) -> None:
        self._started = time.time()
        self._log = EventLog()
        self._guests: dict[str, Guest] = {}
        for item in kinds.flatten(guests):
            guest = record_of(item)
            name = guest.name
            same = [n for n in self._guests if n.partition(" ")[0] == name]
            name = f"{name} {len(same) + 1}" if same else name
            spy(guest.item, self._log, name)
            self._guests[name] = guest
        self._profile = profile([guest.item for guest in self._guests.values()])

    def account(
        self, process: str, facts: Mapping[str, float], *, is_chief: bool = True
    ) -> Account:
        """End the recording of this process and return it.

        Args:
          process: the name of the process, such as "worker 0".
          facts: its results, by name.
          is_chief: whether it is the chief of its job.
        """
        self._profile.stop()
        for guest in self._guests.values():
            unspy(guest.item)
        places = {name: number for number, name in enumerate(self._guests)}
        return Account(
            process,
            is_chief,
            dict(facts),
            {name: _facts(guest) for name, guest in self._guests.items()},
            self._started,
            [
                EventCall(places[r.guest], r.event, r.number, round(r.secs, 5))
                for r in self._log
            ],
            self._profile.timings.as_dict(),
        )


def _facts(guest: Guest) -> GuestFacts:
    events = [
        event
        for event in lifecycle.overridden(guest.item, guest.kind)
        if event not in lifecycle.ALIASES
    ]
    delivered = [event for event in events if roles.delivers(guest.role, event)]
    here = roles.runs_here(guest.role)
    return GuestFacts(guest.kind, guest.role, here, events, delivered)


def finite(value: object) -> Any:
    """Return a value for JSON, in which NaN and infinity are None: JSON has neither."""
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(element) for element in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
