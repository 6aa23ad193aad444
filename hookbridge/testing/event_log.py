"""The events that guests received, in order of arrival."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hookbridge.ground.lifecycle import Delivery
from hookbridge.ground.protocols import Logs


class Record(NamedTuple):
    """One event that one guest received.

    Attributes:
      guest: name of the guest in this log.
      event: the method that was called.
      number: epoch or batch; None for events that have neither.
      secs: seconds since the log was made, on a monotonic clock.
      logs: the scalar entries of a callback's `logs` as Python numbers.
      results: what a `RecordingHook` fetched; None for everything else.
    """

    guest: str
    event: str
    number: int | None
    secs: float
    logs: Mapping[str, float]
    results: Any = None


class EventLog:
    """Every recorded event of any number of guests, in order of arrival.

    Guests of several threads may share one log.

    Args:
      clock: returns seconds as a float; a test gives its own. It is called once for
        each event, on the thread of the guest that records it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self.records: list[Record] = []

    def add(
        self,
        guest: str,
        event: str,
        number: int | None = None,
        *,
        logs: Logs = None,
        results: object = None,
    ) -> None:
        """Append one event.

        Args:
          guest: the guest's name in this log.
          event: the method that was called.
          number: epoch or batch; None for events that have neither.
          logs: a callback's `logs`; only the numbers are kept.
          results: what a hook fetched.
        """
        record = Record(
            guest, event, number, self._clock() - self._start, _scalars(logs), results
        )
        with self._lock:
            self.records.append(record)

    def guests(self) -> list[str]:
        """Return names of all guests, in the order of their first event."""
        return list(dict.fromkeys(r.guest for r in self.records))

    def of(self, guest: str) -> list[Delivery]:
        """Return what a guest received, comparable with `lifecycle.expected_events`.

        Args:
          guest: its name in this log.
        """
        return [Delivery(r.event, r.number) for r in self.records if r.guest == guest]

    def counts(self, guest: str) -> dict[str, int]:
        """Return how often a guest received each event that it got.

        Args:
          guest: its name in this log.
        """
        return dict(Counter(r.event for r in self.records if r.guest == guest))

    def logs(self, guest: str, event: str) -> list[Mapping[str, float]]:
        """Return the `logs` of each such event, in order.

        Args:
          guest: the guest's name in this log.
          event: the method's name.
        """
        return [r.logs for r in self.records if (r.guest, r.event) == (guest, event)]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the records as plain dicts without `results`, for `json.dump`."""
        return [
            {key: value for key, value in r._asdict().items() if key != "results"}
            for r in self.records
        ]

    def clear(self) -> None:
        """Forget everything and start the clock again."""
        with self._lock:
            self.records.clear()
            self._start = self._clock()

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(list(self.records))


def _scalars(logs: Logs) -> dict[str, float]:
    """Return the numbers in `logs`.

    Reads no tensor, since that would wait for its step.
    """
    if not isinstance(logs, Mapping):
        return {}
    return {
        str(key): value if isinstance(value, (bool, int, float)) else value.item()
        for key, value in logs.items()
        if isinstance(value, (bool, int, float, np.number))
        or (isinstance(value, np.ndarray) and value.size == 1)
    }


def number_and_logs(
    event: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[int | None, Any]:
    """Return the epoch or batch and the `logs` of a callback event's arguments."""
    if event in ("set_model", "set_params"):
        return None, None
    key = "epoch" if "epoch" in event else "batch" if "batch" in event else None
    positional = list(args)
    number = None
    if key is not None:
        number = int(kwargs[key] if key in kwargs else positional.pop(0))
    return number, kwargs.get("logs", positional[0] if positional else None)
