"""When the events of scheduled steps reach hooks and callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.parameter_server.queue import Deliveries
from hookbridge.adapters.parameter_server.values import ForeignLogs, StepLogs, StepValue

LEAST_DEFAULT_LAG = 30


def default_max_lag(workers: int) -> int:
    """The lag unless somebody asks for less: every worker has a step and the next.

    No more than `max_lag` + 1 steps are under way at once, so that with a smaller one
    than the number of workers some of them would have nothing to do.
    """
    return max(LEAST_DEFAULT_LAG, 2 * workers)


def connected_workers() -> int:
    """Workers of the cluster that this process coordinates."""
    devices = tf.config.list_logical_devices("CPU")
    places = (tf.DeviceSpec.from_string(device.name) for device in devices)
    return len({place.task for place in places if place.job == "worker"})


class Delivery:
    """The part of a run that holds events back until their step is done.

    Attributes:
      stop_asked: whether a guest has asked for a stop.
      last_logs: the logs of the step delivered last.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._deliveries = Deliveries(LEAST_DEFAULT_LAG)
        self._wishes: list[int] = []
        self.stop_asked = False
        self.last_logs: Any = None

    def guard(self, deliver: Callable[[], None]) -> None:
        """Runs a delivery; errors of guests end the run."""
        raise NotImplementedError

    def load(self, value: StepValue) -> dict[str, Any] | None:
        """The tensors of a step; None where the data ended before it."""
        raise NotImplementedError

    @property
    def max_lag(self) -> int:
        """How many steps deliveries may be behind."""
        return self._deliveries.max_lag

    def set_default_lag(self, workers: int) -> None:
        """The lag that counts unless somebody wants another."""
        if not self._wishes:
            self._deliveries.max_lag = default_max_lag(workers)

    def wish_lag(self, max_lag: int | None) -> None:
        """Somebody wants at most this lag; the least wins."""
        if max_lag is not None:
            self._wishes.append(max_lag)
            self._deliveries.max_lag = min(self._wishes)

    def note_scheduled(self, value: Any) -> None:
        """Counts a step or batch; the same one again changes nothing."""
        self._deliveries.note_scheduled(value)

    def add(self, value: Any, event: Callable[[], None]) -> None:
        """Queues an event of the step scheduled last."""
        self._deliveries.add(value, event)

    def deliver(self, max_lag: int | None = None) -> None:
        """Delivers what is ready, and waits for what is too far behind."""
        if len(self._deliveries):
            self.guard(lambda: self._deliveries.drain(max_lag))

    def flush(self) -> None:
        """Delivers everything, as before the end of an epoch."""
        self.deliver(0)

    def forget(self) -> None:
        """Drops what was not delivered."""
        self._deliveries.clear()
        self.last_logs = None

    def before_batch(self, event: Callable[[], None]) -> None:
        """Delivers the begin of a batch in its turn: after the end of the last one."""
        if not len(self._deliveries):
            event()
            return
        self._deliveries.add(None, event)

    def after_batch(self, logs: Any, event: Callable[[Any], None]) -> None:
        """Delivers the end of a batch in its turn.

        Args:
          logs: what Keras gave: the logs of a scheduled step or batch.
          event: takes the logs as a callback gets them.
        """
        self.note_scheduled(logs)
        if isinstance(logs, StepLogs):
            value, known = logs.value, logs

            def deliver() -> None:
                if self.load(value) is not None:
                    event(known.python())

            self.add(logs, deliver)
        else:
            foreign = ForeignLogs(logs)
            self.add(foreign, lambda: event(foreign.python()))
        self.deliver()

    def before_fetch(self, logs: StepLogs) -> Any:
        """Keras asks for logs at the end of an epoch, before any `on_epoch_end`.

        Returns:
          The logs to give instead, if these do not exist; else None.
        """
        self.flush()
        return self.last_logs if self.load(logs.value) is None else None
