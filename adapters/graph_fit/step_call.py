"""One step: Keras's function and what hooks fetch and feed, in one execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.graph_fit.graph_names import COMPUTED_RATE, reads
from hookbridge.adapters.live_session.feeds import array_of, check_fetch, dense
from hookbridge.ground import compat, structures
from hookbridge.ground.protocols import AnyFunction


class StepCall:
    """What Keras calls in each step.

    It makes one callable for each set of what hooks fetch, feed and set as options.
    """

    def __init__(
        self,
        session: tf.compat.v1.Session,
        options: Any,
        fetches: Mapping[str, Any],
        rate: Any,
    ) -> None:
        self._session = session
        self._graph = session.graph
        self._options = options
        self.fetches = fetches
        self._rate = rate
        self.placeholders: list[Any] = [
            self._graph.get_tensor_by_name(name) for name in options.feed
        ]
        # The placeholders whose values come from a dataset.
        connected = (c.to_tensor for c in options.tensor_connection)
        self.from_dataset: set[str] = {name.partition(":")[0] for name in connected}
        self._own = frozenset(options.feed)
        self._plans = structures.RecentlyUsed()
        self.native: AnyFunction = session._make_callable_from_options(options)
        self._outputs: Any = None
        self.last_feeds: dict[Any, Any] = {}
        self.data_ended: bool = False

    def feed_dict(self, values: Sequence[Any]) -> dict[Any, Any]:
        """Return the feeds of the loop, as a session loop would give them."""
        self.last_feeds = dict(zip(self.placeholders, values, strict=True))
        return self.last_feeds

    def run(
        self,
        fetches: Mapping[Any, Any],
        feed_dict: Mapping[Any, Any] | None,
        options: Any,
        metadata: tf.compat.v1.RunMetadata | None,
    ) -> dict[Any, Any]:
        wanted = {k: f for k, f in fetches.items() if type(k) is not str}
        fed = self._feeds(feed_dict or {})
        asked = options.SerializeToString() if options is not None else b""
        try:
            key = (structures.structure_key(wanted), *fed, asked)
        except structures.UnknownStructureError:
            key = None
        plan: _Plan | None = self._plans.get(key)
        if plan is None:
            plan = _Plan(self._session, self._options, wanted, fed, options)
            if key is not None:
                self._plans.add(key, plan)
        try:
            values = plan.call(fed, metadata if asked else None)
        except tf.errors.OutOfRangeError:
            self.data_ended = True
            raise
        self._outputs = values[: plan.own]
        return {"caller": self._outputs, **plan.build_results(values, fed)}

    def take_outputs(self) -> Any:
        """Return what Keras expects of the last execution, once; None without one."""
        outputs, self._outputs = self._outputs, None
        return outputs

    def _feeds(self, feed_dict: Mapping[Any, Any]) -> dict[str, Any]:
        """Return `{tensor name: array}` of a feed, checked as in `Session.run`."""
        feeds: dict[str, Any] = {}
        for key, value in structures.flat_feeds(feed_dict):
            if isinstance(key, tf.Tensor) and key.name in self._own:
                feeds[key.name] = value  # Keras has made an array of it
                continue
            for tensor, part in dense(self._graph, key, value):
                for same in self._same(tensor):
                    feeds[same.name] = array_of(self._graph, same, part)
        return feeds

    def _same(self, tensor: tf.Tensor) -> list[Any]:
        """Return the tensors to feed for `tensor`: of the rate, all reads of it."""
        rate = self._rate
        name = getattr(getattr(rate, "_graph_element", None), "name", None)
        if tensor.name == name:
            return reads(rate)
        if _is_computed_rate(tensor):
            is_schedule = not isinstance(rate, tf.Variable)
            kind = (
                f"a `{type(rate).__name__}`" if is_schedule else "a rate with `decay=`"
            )
            raise errors.LiveSessionError(
                f"A hook feeds `learning_rate:0`, which is {kind} "
                "in a v1 graph: each step computes it. Compile the model with a "
                "number as its learning rate, which hooks can feed, or put the "
                "change into the schedule.",
                see="v1 graph in fit",
            )
        return [tensor]


def _is_computed_rate(tensor: tf.Tensor) -> bool:
    return str(tensor.op.name).rpartition("/")[2].startswith(COMPUTED_RATE)


class _Plan:
    """How a step is run for one structure of fetches and set of feeds."""

    def __init__(
        self,
        session: tf.compat.v1.Session,
        options: Any,
        wanted: Mapping[Any, Any],
        fed: Mapping[str, Any],
        run_options: tf.compat.v1.RunOptions | None,
    ) -> None:
        # Keeps the fetched objects alive, since plans are found by their ids.
        self._wanted = wanted
        self._session = session
        # What is read in a run of its own before the step: the update would race.
        self._read_first: list[tf.Tensor] = []
        self._mapper = compat.private("FetchMapper").for_fetch(wanted)
        self.own = len(options.fetch)
        self._feeds = list(fed)
        self._callable_options = type(options)()
        self._callable_options.CopyFrom(options)
        self._callable_options.ClearField("feed")
        self._callable_options.feed.extend(self._feeds)
        # A fed tensor is disconnected from the dataset.
        sources = {c.to_tensor: c.from_tensor for c in options.tensor_connection}
        del self._callable_options.tensor_connection[:]
        for connection in options.tensor_connection:
            if connection.to_tensor not in fed:
                self._callable_options.tensor_connection.add().CopyFrom(connection)
        # Where each unique fetch of the hooks is found: the index of a result, the
        # name of a feed, or None for an operation.
        self._sources: list[int | str | None] = [
            self._source_of(session.graph, fetch, fed, sources)
            for fetch in self._mapper.unique_fetches()
        ]
        if run_options is not None:
            self._callable_options.run_options.MergeFrom(run_options)
        self._call = session._make_callable_from_options(self._callable_options)

    def _source_of(
        self,
        graph: tf.Graph,
        fetch: tf.Tensor | tf.Operation,
        fed: Mapping[str, Any],
        sources: Mapping[str, str],
    ) -> int | str | None:
        """Add a fetch to the callable; return where its value is found."""
        if fetch.graph is not graph:
            raise ValueError(f"{fetch} is not an element of this graph.")
        if isinstance(fetch, tf.Operation):
            self._callable_options.target.append(fetch.name)
            return None
        name = fetch.name
        if name in fed:
            return str(name)
        check_fetch(fetch, "v1 graph in fit")
        if _is_computed_rate(fetch):
            self._read_first.append(fetch)
            return str(name)
        self._callable_options.fetch.append(sources.get(name, name))
        return len(self._callable_options.fetch) - 1

    def call(
        self, fed: dict[str, Any], metadata: tf.compat.v1.RunMetadata | None
    ) -> list[Any]:
        """Run the step; adds to `fed` what is read before it."""
        for tensor in self._read_first:
            fed[tensor.name] = self._session.run(tensor)
        values = [fed[name] for name in self._feeds]
        return self._call(*values, run_metadata=metadata)  # type: ignore[no-any-return]

    def build_results(self, values: Sequence[Any], fed: Mapping[str, Any]) -> Any:
        """Return the results of all hooks, each in the structure of its fetches."""
        if not self._wanted:
            return {}
        flat = [
            None if p is None else fed[p] if isinstance(p, str) else values[p]
            for p in self._sources
        ]
        return self._mapper.build_results(flat)
