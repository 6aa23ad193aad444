"""Guests that record every event, and may fetch, feed and ask to stop."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests.any_flavour import AnyFlavour
from hookbridge.ground import lifecycle
from hookbridge.ground.protocols import (
    Coordinator,
    KerasModel,
    RunContext,
    RunValues,
    Session,
)
from hookbridge.testing.event_log import EventLog, number_and_logs


class RecordingHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook that records every event and may fetch, feed and ask to stop.

    Like any hook it is called on the thread of the loop, once for each event. Its
    functions are called on the same thread.

    Args:
      log: where events go.
      name: this hook's name in the log.
      fetches: what to fetch with each run; a structure of tensors or names, or a
        function without arguments that is called once in each `begin` (with the graph
        as default graph) and returns one. The values are in the `after_run` records.
      feed_dict: what to feed with each run, as `{tensor or name: value}` or a
        function without arguments that is called once before each run.
      options: a `tf.compat.v1.RunOptions` for each run.
      stop_after_runs: asks to stop in the `after_run` of this run, counted from 1.
    """

    def __init__(
        self,
        log: EventLog,
        name: str = "RecordingHook",
        *,
        fetches: object = None,
        feed_dict: Mapping[Any, Any] | Callable[[], Mapping[Any, Any]] | None = None,
        options: object = None,
        stop_after_runs: int | None = None,
    ) -> None:
        super().__init__()
        self.log = log
        self.name = name
        self._wanted = fetches
        self._feed_dict = feed_dict
        self._options = options
        self._stop_after_runs = stop_after_runs
        self._runs = 0

    def begin(self) -> None:
        self.log.add(self.name, "begin")
        self._runs = 0
        self._fetches = self._wanted() if callable(self._wanted) else self._wanted

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        self.log.add(self.name, "after_create_session")

    def before_run(self, run_context: RunContext) -> Any:
        self.log.add(self.name, "before_run")
        feed = self._feed_dict() if callable(self._feed_dict) else self._feed_dict
        if self._fetches is None and feed is None and self._options is None:
            return None
        return tf.compat.v1.train.SessionRunArgs(
            self._fetches, feed_dict=feed, options=self._options
        )

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        self.log.add(self.name, "after_run", results=run_values.results)
        self._runs += 1
        if self._runs == self._stop_after_runs:
            run_context.request_stop()

    def end(self, session: Session) -> None:
        self.log.add(self.name, "end")

    def results(self) -> list[Any]:
        """Return what each run fetched."""
        return [
            r.results
            for r in self.log
            if (r.guest, r.event) == (self.name, "after_run")
        ]


class RecordingCallback(AnyFlavour):
    """A callback that records every event; every Keras flavour takes it.

    One instance may serve Keras 2, Keras 3 and tf_keras. It is called on the thread of
    the loop, once for each event.

    Args:
      log: where events go.
      name: this callback's name in the log.
      only: the events it overrides; None for all. The methods of the other events have
        Keras's mark for "not overridden".
      stop_in: `(event, n)`: sets `model.stop_training` in the n-th such event,
        counted from 1.

    Raises:
      errors.InvalidArgumentError: `only` or `stop_in` names no event.
    """

    def __init__(
        self,
        log: EventLog,
        name: str = "RecordingCallback",
        *,
        only: Collection[str] | None = None,
        stop_in: tuple[str, int] | None = None,
    ) -> None:
        names = {e.name for e in lifecycle.CALLBACK_EVENTS}
        for event in [*(only or ()), *(stop_in or ())[:1]]:
            if event not in names:
                raise errors.InvalidArgumentError(
                    f"Received the event {event!r}; expected one of "
                    f"{', '.join(sorted(names))}."
                )
        self.log = log
        self.name = name
        self._stop_in = stop_in
        self._seen: Counter[str] = Counter()
        self._recorded = frozenset(names if only is None else only)
        for event in names - {"set_model", "set_params"}:
            if event in lifecycle.ALIASES or event not in self._recorded:
                setattr(self, event, _not_overridden)
            else:
                setattr(self, event, functools.partial(self._receive, event))

    def set_model(self, model: KerasModel | None) -> None:
        super().set_model(model)
        self._receive("set_model")

    def set_params(self, params: Mapping[str, Any]) -> None:
        super().set_params(params)
        self._receive("set_params")

    def _receive(self, event: str, *args: Any, **kwargs: Any) -> None:
        if event in self._recorded:
            number, logs = number_and_logs(event, args, kwargs)
            self.log.add(self.name, event, number, logs=logs)
        self._seen[event] += 1
        if self._stop_in == (event, self._seen[event]):
            self.model.stop_training = True


def _not_overridden(*args: Any, **kwargs: Any) -> None:
    """Stand in for the method of an event that the guest does not override."""


_not_overridden._is_default = True  # type: ignore[attr-defined]
