"""The `logs` of a training run, averaged as Keras does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from hookbridge.adapters.session_graph.log_sources import SIZE, LogSource, MetricValues
from hookbridge.adapters.session_loop.shared import values
from hookbridge.adapters.state.loop_state import Means
from hookbridge.ground.protocols import Session
from hookbridge.ground.running_mean import RunningMean


class EpochLogs:
    """The running values of an epoch, in the order of `sources`."""

    def __init__(self, sources: Sequence[LogSource]) -> None:
        self._sources = [s for s in sources if s.key != SIZE]
        self._means = {
            s.key: RunningMean()
            for s in self._sources
            if s.maybe_scalar and not s.streaming
        }
        self._streaming = MetricValues([op for s in sources for op in s.resets])
        self.current: dict[str, Any] = {}

    @property
    def keys(self) -> Collection[str]:
        """The entries whose means are kept."""
        return self._means.keys()

    def begin_epoch(self, session: Session, means: Means | None = None) -> None:
        """Forget the last epoch; `means` are of an interrupted one that goes on."""
        sums, metrics = means or Means()
        for key in self._means:
            self._means[key] = RunningMean(*map(np.float32, sums.get(key, ())))
        self.current = {}
        if self._streaming:
            self._streaming.write(session, metrics)

    def reset(self, session: Session) -> None:
        """Begin new means with the next step of the epoch."""
        # If no step follows, the end of the epoch still reports the means so far.
        now = self.current
        self.begin_epoch(session)
        self.current = now

    def sums(self) -> dict[str, tuple[float, float]]:
        """Sum and weight of each mean of the epoch so far."""
        return {key: mean.state() for key, mean in self._means.items()}

    def metrics(self, session: Session) -> dict[str, Any]:
        """Return what the streaming metrics hold, by the names of their variables."""
        return self._streaming.read(session)

    def fill(self, session: Session) -> None:
        """Fill `current` from what was restored."""
        wanted = {s.key: s.value for s in self._sources if s.streaming}
        logs = {
            key: total / count for key, (total, count) in self.sums().items() if count
        }
        logs.update((k, float(v)) for k, v in session.run(wanted).items())
        self.current = {s.key: logs[s.key] for s in self._sources if s.key in logs}

    def update(self, fetched: Mapping[str, Any] | None) -> dict[str, Any]:
        """Take the values of one step; return the means so far."""
        fetched = fetched or {}
        size = np.float32(fetched.get(SIZE, 1.0))
        logs = {}
        for source in self._sources:
            if source.key not in fetched:
                # This kind of step does not fetch it: the value stays as it was.
                if source.key in self.current:
                    logs[source.key] = self.current[source.key]
                continue
            value = fetched[source.key]
            mean = self._means.get(source.key)
            logs[source.key] = (
                float(mean.update(np.float32(value), size))
                if mean is not None and getattr(value, "ndim", 0) == 0
                else values.as_log_value(value)
            )
        self.current = logs
        return logs
