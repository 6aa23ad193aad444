"""The `logs` of a training run: fetched in one piece, averaged as Keras does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hookbridge.adapters import step_graph, values
from hookbridge.adapters.log_sources import LogSource

# An entry of `logs=` that is the number of examples in the batch. Keras weights
# the mean loss of an epoch with it; it is no entry of `logs` itself.
SIZE = "size"


class FetchPlan:
    """What a training step fetches for all callbacks together.

    All numbers travel as one vector of float64, which holds every float32 and
    every step below 2**53 exactly: one fetch costs what one hook's does, however
    many callbacks share it.

    Args:
      counter: the global-step variable, or None.
      sources: the entries of `logs`.
      tails: the ops after which the counter can be read.
    """

    def __init__(
        self, counter: Any, sources: Sequence[LogSource], tails: Sequence[Any]
    ) -> None:
        import tensorflow as tf

        self._scalars = [s for s in sources if s.scalar]
        self._others = [s for s in sources if not s.scalar]
        self._vectors: dict[Any, Any] = {}
        self._arguments: dict[step_graph.Step, Any] = {}
        with tf.name_scope("hookbridge"):
            numbers = [tf.cast(s.tensor, tf.float64) for s in self._scalars]
            for tail in tails if counter is not None else ():
                with tf.control_dependencies([tail]):
                    step = tf.cast(counter.read_value(), tf.float64)
                self._vectors[tail] = tf.stack([*numbers, step])
            self._plain = tf.stack(numbers) if numbers else None

    def arguments(self, step: step_graph.Step, feeds: Mapping[Any, Any]) -> Any:
        """The `SessionRunArgs` of a run that is `step`.

        Args:
          step: what the run is.
          feeds: learning rates that a callback has set.
        """
        arguments = self._arguments.get(step)
        if arguments is None:
            import tensorflow as tf

            vector = self._vectors.get(step.tail, self._plain)
            fetches = vector if vector is not None else []
            if self._others:
                fetches = [fetches, [s.tensor for s in self._others]]
            arguments = tf.compat.v1.train.SessionRunArgs(fetches)
            self._arguments[step] = arguments
        return arguments._replace(feed_dict=dict(feeds)) if feeds else arguments

    def count(self, step: step_graph.Step, results: Any) -> int | None:
        """The counter after the step, if it was read with it."""
        if step.tail not in self._vectors:
            return None
        return int((results[0] if self._others else results)[-1])

    def unpack(self, step: step_graph.Step, results: Any) -> dict[str, Any]:
        """The fetched values of the entries of `logs`."""
        rest: list[Any] = []
        if self._others:
            results, rest = results
        numbers = results.tolist() if isinstance(results, np.ndarray) else []
        if step.tail in self._vectors:
            numbers.pop()
        found = dict(zip([s.key for s in self._scalars], numbers, strict=True))
        for source, value in zip(self._others, rest, strict=True):
            found[source.key] = value
        return found

    def columns(
        self, step: step_graph.Step, results: Sequence[Any]
    ) -> dict[str, Any] | None:
        """The values of several steps of one kind, `{key: array of shape [N]}`.

        None where they have to be unpacked one by one.
        """
        if self._others or step.tail not in self._vectors:
            return None
        table = np.concatenate(results).reshape(len(results), -1)
        return {s.key: table[:, i] for i, s in enumerate(self._scalars)}


class EpochLogs:
    """The running values of an epoch, in the order of `sources`.

    Args:
      sources: the entries of `logs`.
    """

    def __init__(self, sources: Sequence[LogSource]) -> None:
        self._sources = [s for s in sources if s.key != SIZE]
        self._means = {
            s.key: values.RunningMean()
            for s in self._sources
            if s.scalar and not s.streaming
        }
        self.resets = [op for s in sources for op in s.resets]
        self.current: dict[str, Any] = {}

    def begin_epoch(self) -> None:
        """Forgets the last epoch."""
        for mean in self._means.values():
            mean.reset()
        self.current = {}

    def state(self) -> dict[str, list[float]]:
        """The sums of the epoch so far, as JSON."""
        return {key: mean.state() for key, mean in self._means.items()}

    def restore(self, state: Any) -> None:
        """Goes on from what `state` returned; what does not fit is left out."""
        if isinstance(state, dict):
            for key, numbers in state.items():
                if key in self._means:
                    self._means[key].restore(*map(float, numbers))

    def update_all(self, columns: Mapping[str, Any]) -> None:
        """Takes the values of several steps at once."""
        sizes = columns.get(SIZE, 1.0)
        for source in self._sources:
            column, mean = columns[source.key], self._means.get(source.key)
            self.current[source.key] = (
                mean.update_all(column, sizes) if mean else float(column[-1])
            )

    def update(self, fetched: Mapping[str, Any] | None) -> dict[str, Any]:
        """Takes the values of one step; returns the means so far."""
        fetched = fetched or {}
        size = float(fetched.get(SIZE, 1.0))
        logs = {}
        for source in self._sources:
            if source.key not in fetched:
                continue
            value = fetched[source.key]
            mean = self._means.get(source.key)
            logs[source.key] = (
                mean.update(value, size)
                if mean is not None
                else values.as_log_value(value)
            )
        self.current = logs
        return logs
