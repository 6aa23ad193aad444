"""The hooks and listeners that the trace scenarios use."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
from trace_events import Event, describe, describe_options, type_name

from hookbridge.ground import compat

v1 = tf.compat.v1

# When something happens: (hook method, number of its call, from 1).
Moment = tuple[str, int]


class CoordStop(NamedTuple):
    """A `coord.request_stop` in the n-th `before_run`, from 1."""

    call: int
    error: Callable[[], Exception] | None = None
    bare: bool = False  # passes the exception itself, outside an `except` block


class Recorder(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Records every call it gets; fails, stops and fetches as it is told.

    With `more`, it records everything else that a hook can see.
    """

    def __init__(
        self,
        log: list[Event],
        name: str,
        *,
        raises: Mapping[Moment, Callable[[], BaseException]] | None = None,
        stops: Iterable[Moment] = (),
        args: Callable[[], Any] | None = None,
        more: bool = False,
        coord_stop: CoordStop | None = None,
    ) -> None:
        self.log, self.name, self.more, self.args = log, name, more, args
        self.raises = dict(raises or {})
        self.stops = set(stops)
        self.coord_stop = coord_stop
        self.calls: collections.Counter[str] = collections.Counter()
        self.coord: Any = None
        self.sessions: list[Any] = []

    def _step(self, session: Any) -> Any:
        if self.read is None:
            return None
        try:
            return int(session.run(self.read))
        except Exception as e:
            return f"ERR:{type(e).__name__}"

    def _event(
        self, event: str, session: Any = None, context: Any = None, **more: Any
    ) -> None:
        self.calls[event] += 1
        entry: Event = {"e": event, "h": self.name}
        if session is not None:
            entry["gs"] = self._step(session)
        if context is not None:
            entry["stop"] = bool(context.stop_requested)
        self.log.append({**entry, **more})
        moment = (event, self.calls[event])
        if moment in self.raises:
            error = self.raises[moment]()
            kind = type(error).__name__
            self.log.append({"e": "RAISE", "h": self.name, "in": event, "x": kind})
            raise error
        if context is not None and moment in self.stops:
            context.request_stop()
            self.log.append({"e": "REQUEST_STOP", "h": self.name, "in": event})

    def begin(self) -> None:
        self.graph = v1.get_default_graph()
        self.read = None
        if v1.train.get_global_step() is not None:
            self.read = compat.private("global_step_read")()
        more: Event = {}
        if self.more:
            more["finalized"] = bool(self.graph.finalized)
            more["default_session"] = v1.get_default_session() is not None
        self._event("begin", **more)

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.coord = coord
        self.sessions.append(session)
        more: Event = {}
        if self.more:
            more = {
                "finalized": bool(v1.get_default_graph().finalized),
                "same_graph": v1.get_default_graph() is self.graph,
                "session_type": type_name(session),
                "coord": type(coord).__name__,
                "coord_stop": bool(coord.should_stop()),
                "default_session": v1.get_default_session() is not None,
            }
        self._event("after_create_session", session, **more)

    def before_run(self, run_context: Any) -> Any:
        more: Event = {}
        if self.more:
            original = run_context.original_args
            feed = original.feed_dict
            more = {
                "fetches": type(original.fetches).__name__,
                "feed": None if feed is None else sorted(k.name for k in feed),
                "orig_options": original.options is not None,
                "session_type": type_name(run_context.session),
                "default_session": v1.get_default_session() is not None,
                "default_graph_same": v1.get_default_graph() is self.graph,
            }
        self._event("before_run", run_context.session, run_context, **more)
        stop = self.coord_stop
        if stop is not None and self.calls["before_run"] == stop.call:
            self._stop_coordinator(stop)
            self.log.append({"e": "COORD_REQUEST_STOP", "h": self.name})
        return self.args() if self.args is not None else None

    def _stop_coordinator(self, stop: CoordStop) -> None:
        if stop.error is None:
            self.coord.request_stop()
        elif stop.bare:
            self.coord.request_stop(stop.error())
        else:
            try:
                raise stop.error()
            except Exception:
                self.coord.request_stop(sys.exc_info())

    def after_run(self, run_context: Any, run_values: Any) -> None:
        more: Event = {}
        if self.args is not None or self.more:
            more["results"] = describe(run_values.results)
        if self.more:
            metadata = run_values.run_metadata
            more["options"] = describe_options(run_values.options)
            more["run_metadata"] = type(metadata).__name__
            more["step_stats"] = len(metadata.step_stats.dev_stats) > 0
            more["partition_graphs"] = len(metadata.partition_graphs) > 0
        self._event("after_run", run_context.session, run_context, **more)

    def end(self, session: Any) -> None:
        more = {"session_type": type_name(session)} if self.more else {}
        self._event("end", session, **more)


class Listener(tf.compat.v1.train.CheckpointSaverListener):  # type: ignore[misc]
    """Records the calls of a `CheckpointSaverHook`; may ask for a stop at a step."""

    def __init__(
        self, log: list[Event], name: str, *, stop_at: int | None = None
    ) -> None:
        self.log, self.name, self.stop_at = log, name, stop_at

    def _event(self, event: str, step: Any = None) -> None:
        number = None if step is None else int(step)
        self.log.append({"e": f"listener.{event}", "h": self.name, "step": number})

    def begin(self) -> None:
        self._event("begin")

    def before_save(self, session: Any, global_step_value: Any) -> None:
        self._event("before_save", global_step_value)

    def after_save(self, session: Any, global_step_value: Any) -> Any:
        self._event("after_save", global_step_value)
        if self.stop_at is not None and global_step_value >= self.stop_at:
            return True
        return None

    def end(self, session: Any, global_step_value: Any) -> None:
        self._event("end", global_step_value)


class EventWriter:
    """Takes the place of a `FileWriter`; records what is written."""

    def __init__(self, log: list[Event]) -> None:
        self.log = log

    def add_summary(self, summary: Any, global_step: Any) -> None:
        event: Event = {"e": "add_summary"}
        if isinstance(summary, bytes):
            value = v1.Summary.FromString(summary).value[0]
            event.update(tag=value.tag, v=value.simple_value)
        else:
            event["tag"] = summary.value[0].tag
        self.log.append({**event, "step": int(global_step)})

    def add_session_log(self, session_log: Any, global_step: Any) -> None:
        status = int(session_log.status)
        self.log.append(
            {"e": "session_log", "status": status, "step": int(global_step)}
        )

    def flush(self) -> None:
        self.log.append({"e": "flush"})
