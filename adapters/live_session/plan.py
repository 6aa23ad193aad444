"""What a live session does for one structure of fetches and one set of feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.keras_model.variables import ModelVariable
from hookbridge.adapters.live_session.feeds import check_fetch, mapper_of
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.imported_ops import SessionResources
from hookbridge.adapters.live_session.program import SessionProgram


class Plan:
    """The program of one run, and how its values become the results of `run`."""

    def __init__(
        self,
        graph: LiveGraph,
        fetches: object,
        feeds: Sequence[Any],
        resources: SessionResources,
    ) -> None:
        # Keeps the fetched objects alive, since plans are found by their ids.
        self._given = fetches
        self._mapper = mapper_of(graph, fetches)
        self._fetches = [_value_of(graph, f) for f in self._mapper.unique_fetches()]
        self._fed = {t.name for t in feeds}
        steps = graph.global_step_tensors - self._fed
        # The session knows the global step, so fetching it runs nothing.
        to_run = [f for f in self._fetches if f.name not in steps]
        self.program: SessionProgram = SessionProgram(graph, to_run, feeds, resources)
        needed = self.program.needed
        graph.variables.check_current(needed)
        graph.tap(*needed.step_tensors)
        self.reads_step: bool = graph.global_step_name in needed.handles
        self.writes_step: bool = graph.global_step_name in needed.written
        self.written: list[ModelVariable] = [
            graph.variables.handles[name] for name in sorted(needed.written)
        ]
        used = [graph.variables.handles[name] for name in sorted(needed.handles)]
        self.aggregated: list[ModelVariable] = [
            variable for variable in used if variable.is_aggregated
        ]
        # Whether it runs a step and needs no work on variables around it.
        self.is_plain_step: bool = (
            needed.runs_step
            and not feeds
            and not self.reads_step
            and not self.aggregated
            and not self.written
        )

    def build_results(
        self, step: int, fed: Mapping[str, Any], values: Sequence[Any]
    ) -> Any:
        """Return what `run` returns, in the structure of its fetches.

        Args:
          step: the global step after the run.
          fed: the fed arrays, by the name of their tensor.
          values: the values of the program's tensors, in its order.
        """
        by_name = {t.name: v for t, v in zip(self.program.tensors, values, strict=True)}
        flat: list[Any] = []
        for fetch in self._fetches:
            if isinstance(fetch, tf.Operation):
                flat.append(None)
            elif fetch.name in self._fed:
                flat.append(fed[fetch.name])
            elif fetch.name in by_name:
                flat.append(by_name[fetch.name])
            else:
                flat.append(np.int64(step))
        return self._mapper.build_results(flat)


def _value_of(graph: LiveGraph, fetch: tf.Tensor | tf.Operation) -> Any:
    """Return the element to fetch: a variable's value, otherwise `fetch` itself."""
    if fetch.graph is not graph:
        raise errors.RunArgumentsError(f"{fetch} is not an element of this graph.")
    fetch = graph.variables.values.get(fetch.name, fetch)
    check_fetch(fetch, "live session")
    return fetch
