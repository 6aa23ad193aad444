"""The learning rates of a session, and which of them feeds override in each step."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hookbridge.adapters.live_model.rate import LiveRate, RateChanges
from hookbridge.adapters.session_graph import learning_rate, saved, session_variables
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Session


class LiveRates:
    """The learning rates of a session, for the callbacks of one `as_hooks` call.

    A session takes the feed of a tensor from one hook only. That is a hook of the
    `as_hooks` call that joined last: its `before_run` comes after the others', so its
    feed has what their callbacks set as the step begins.

    Args:
      in_graph: the rates of the graph, one for each optimizer.
      session: returns the session, or None before there is one.
      step: returns the global step, for callbacks of Keras 2; None for others.
    """

    def __init__(
        self,
        in_graph: Sequence[LearningRate],
        session: Callable[[], Any],
        step: Callable[[], int] | None = None,
    ) -> None:
        self.in_graph = in_graph
        self._session = session
        self.changes: RateChanges = RateChanges()
        self.feeds_steps = False  # whether steps are fed from this call
        self.touched: set[LiveRate] = set()  # those used since the last `push`
        self.each: list[LiveRate] = [
            LiveRate(rate, session, self.changes, self.touched, step)
            for rate in in_graph
        ]
        self._at_begin: dict[str, float] = {}  # what was set before the run began
        self._events = 0  # open events: a validation's may be nested in another
        self._copies: dict[Any, tuple[Any, ...]] = {}

    def join(self, session: Session) -> None:
        """Share what callbacks of a session have set, and feed it from here on."""
        reference = _LAST_JOINED.get(session)
        others = None if reference is None else reference()
        if others is not None:
            others.feeds_steps = False
            self.changes.share(others.changes)
        self.feeds_steps = True
        _LAST_JOINED.put(session, weakref.ref(self))

    def feed_dict(self) -> dict[Any, Any]:
        """Return the feeds of a step."""
        # Each rate is fed under all its keys. So a `MonitoredSession` sees that a hook
        # feeds the same rate, by whatever key, and says so as for any two hooks.
        feeds: dict[Any, Any] = {}
        for tensor, value in self.changes.fed.items():
            if tensor not in self._copies:
                self._copies[tensor] = learning_rate.copies(tensor)
            for copy in self._copies[tensor]:
                array = np.asarray(value, copy.dtype.base_dtype.as_numpy_dtype)
                feeds[copy] = feeds[copy.name] = array
        return feeds

    def begin_event(self) -> None:
        """Let handed-out variables be brought up to date when used from here on."""
        if self.touched:
            self.push()  # assigned between events
        self._events += 1
        for rate in self.each:
            rate.begin_event()

    def push(self) -> None:
        """Make the session use the values that callbacks have assigned."""
        for rate in self.each:
            rate.push()
        self.touched.clear()

    def end_event(self) -> None:
        """Note that an event is over."""
        self._events -= 1
        if not self._events:
            self.touched.clear()  # an event that failed did not push
            for rate in self.each:
                rate.end_event()

    def drop(self) -> None:
        """Forget what an event that failed has assigned, and did not push."""
        for rate in self.each:
            rate.drop()

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Return a context after which steps are fed what they were fed before it.

        `session_variables.undone`, within it, undoes what callbacks have assigned.
        """
        before = dict(self.changes.fed)
        yield
        self.changes.fed.clear()
        self.changes.fed.update(before)
        for rate in self.each:
            rate.refresh()

    def state(self) -> dict[str, float]:
        """Return the rates that callbacks have set and that no checkpoint holds."""
        return self._values(
            [t for t, v in self.changes.assigned.items() if not saved.is_saved(v)]
        )

    def _values(self, assigned: Sequence[Any]) -> dict[str, float]:
        """Return the rates that are fed, and some of those that were assigned."""
        values = session_variables.read(self._session(), assigned)
        now = dict(zip(assigned, values, strict=True))
        return {
            t.name: float(value) for t, value in {**self.changes.fed, **now}.items()
        }

    def begin_run(self) -> None:
        """Note the rates that are set, for `begin_run_again`."""
        self._at_begin = self._values(list(self.changes.assigned))

    def begin_run_again(self) -> None:
        """Set the rates as they were when the run began, in a session without them."""
        self.forget_fed()
        self.restore(self._at_begin)

    def forget_fed(self) -> None:
        """Forget what is fed: the state of an earlier step takes its place."""
        for rate in self.in_graph:
            self.changes.fed.pop(rate.tensor, None)

    def restore(self, state: Mapping[str, float]) -> None:
        """Set again the rates of a `state`; a single one by whatever name."""
        values = [state.get(rate.tensor.name) for rate in self.in_graph]
        if len(values) == len(state) == 1:
            # `fit`, or an earlier version of the program, had another name for it.
            values = list(state.values())
        for live, value in zip(self.each, values, strict=True):
            if value is not None and live.rate.kind != "schedule":
                live.set(value)

    def unsaved(self) -> dict[str, LiveRate]:
        """Return `{name: rate}` of the one rate if no variable holds it, else `{}`."""
        if len(self.each) != 1:
            return {}
        (live,) = self.each
        rate = live.rate
        has_value = rate.default is not None or rate.tensor in self.changes.fed
        return {rate.tensor.op.name: live} if rate.kind == "fed" and has_value else {}


_LAST_JOINED = Fact[weakref.ref[LiveRates]]("session", "whose rates are fed")
