"""When the events of scheduled steps reach hooks and callbacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.adapters.parameter_server.step_values import (
    ForeignLogs,
    StepLogs,
    StepValue,
)
from hookbridge.ground.protocols import Logs

LEAST_DEFAULT_LAG = 30


def default_max_lag(workers: int) -> int:
    """Return the lag if nobody asks for one: enough for two steps per worker."""
    # At most `max_lag` + 1 steps are in flight; with a lag below the number of workers,
    # some workers would have nothing to do.
    return max(LEAST_DEFAULT_LAG, 2 * workers)


def connected_workers() -> int:
    """Return the number of workers in the cluster that this process coordinates."""
    devices = tf.config.list_logical_devices("CPU")
    specs = (tf.DeviceSpec.from_string(device.name) for device in devices)
    return len({spec.task for spec in specs if spec.job == "worker"})


class _Event(NamedTuple):
    """An event of the step `number`, with the values that it waits for."""

    number: int
    value: Any  # has `is_ready`; None waits for the events before it only
    deliver: Callable[[], None]


class EventQueue:
    """Holds events back, first in first out, until their step is done."""

    def __init__(
        self,
        guard: Callable[[Callable[[], None]], None],
        load: Callable[[StepValue], dict[str, Any] | None],
        workers: int,
    ) -> None:
        self._guard = guard
        self._load = load
        self._default = default_max_lag(workers)
        self._limits: list[int] = []
        self._events: deque[_Event] = deque()
        self._scheduled = 0
        self._latest: Any = None
        self._is_delivering = False
        self.max_lag: int = self._default
        self.stop_asked = False
        self.last_logs: Any = None

    def limit_lag(self, max_lag: int | None) -> None:
        """Allow at most this lag; the smallest of all limits holds."""
        # None requests the default, which then is the upper bound.
        self._limits.append(self._default if max_lag is None else max_lag)
        self.max_lag = min(self._limits)

    def note_scheduled(self, value: object) -> None:
        """Count a step or batch; the same one again changes nothing."""
        if value is not self._latest:
            self._latest = value
            self._scheduled += 1

    def add(self, value: object, event: Callable[[], None]) -> None:
        """Queue an event of the step scheduled last."""
        self._events.append(_Event(self._scheduled, value, event))

    def deliver(self, max_lag: int | None = None) -> None:
        """Deliver events that are ready; wait for those that lag too far behind."""
        if self._events and not self._is_delivering:
            bound = self.max_lag if max_lag is None else max_lag
            self._guard(lambda: self._drain(bound))

    def _drain(self, max_lag: int) -> None:
        """Deliver events until the first one that may wait on."""
        self._is_delivering = True
        try:
            while self._events:
                head = self._events[0]
                is_due = self._scheduled - head.number >= max_lag
                if not (is_due or head.value is None or head.value.is_ready):
                    break
                # Removed before its delivery: a failed delivery is not repeated.
                self._events.popleft()
                head.deliver()
        finally:
            self._is_delivering = False

    def flush(self) -> None:
        """Wait for all scheduled steps and deliver all their events."""
        self.deliver(0)

    def forget(self) -> None:
        """Drop all events that were not delivered."""
        self._events.clear()
        self._latest = None
        self.last_logs = None

    def before_batch(self, event: Callable[[], None]) -> None:
        """Deliver the start of a batch after the end of the previous batch."""
        if self._events:
            self.add(None, event)
        else:
            event()

    def after_batch(self, logs: Logs, event: Callable[[Any], None]) -> None:
        """Deliver the end of a batch in its turn, with logs for a callback."""
        self.note_scheduled(logs)
        entry = logs if isinstance(logs, StepLogs) else ForeignLogs(logs)

        def deliver() -> None:
            if isinstance(entry, ForeignLogs) or self._load(entry.value) is not None:
                event(entry.python())

        self.add(entry, deliver)
        self.deliver()

    def before_fetch(self, logs: StepLogs) -> Any:
        """Act when Keras asks for an epoch's logs, before any `on_epoch_end`."""
        self.flush()
        return self.last_logs if self._load(logs.value) is None else None
