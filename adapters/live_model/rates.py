"""The learning rates of a session, and which of them feeds override in each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hookbridge.adapters.live_model.rate import LiveRate, OverriddenRates
from hookbridge.adapters.session_graph import saved, session_variables
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Session


class LiveRates:
    """The learning rates of a session, one for each optimizer in the graph."""

    def __init__(
        self,
        rates: Sequence[LearningRate],
        session: Callable[[], Any],
        step: Callable[[], int] | None = None,
    ) -> None:
        self._session = session
        self.touched: set[LiveRate] = set()  # those used since the last `push`
        self.each: list[LiveRate] = [
            LiveRate(rate, session, self.touched, step) for rate in rates
        ]
        # Shared by all rates of a session.
        self.feeds: OverriddenRates = OverriddenRates()
        self._share()
        self._events = 0  # open events: a validation's may be nested in another

    def _share(self) -> None:
        for rate in self.each:
            rate.feeds = self.feeds

    def join(self, session: Session) -> OverriddenRates:
        """Share the overridden rates with all callbacks of a session."""
        before = self.feeds
        self.feeds = _OVERRIDDEN.get_or_put(session, OverriddenRates)
        for tensor, value in before.items():
            self.feeds.setdefault(tensor, value)
        self.feeds.assigned.update(before.assigned)
        self._share()
        return self.feeds

    def note_fed(self, value: object) -> None:
        """Note what the loop itself fed for the one rate in the last step, or None."""
        self.each[0].fed_by_loop = value

    def begin_event(self) -> None:
        """From here on handed-out variables are brought up to date when used."""
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

    def begin_epoch(self) -> None:
        """`undo_epoch` takes back what is set from here on."""
        for rate in self.each:
            rate.begin_epoch()

    def undo_epoch(self) -> None:
        """Take back what was set since `begin_epoch`: it was set in an earlier run."""
        for rate in self.each:
            rate.undo_epoch()

    def state(self) -> dict[str, float]:
        """Return the rates that callbacks have set and that no checkpoint holds."""
        unsaved = [t for t, v in self.feeds.assigned.items() if not saved.is_saved(v)]
        now = dict(
            zip(unsaved, session_variables.read(self._session(), unsaved), strict=True)
        )
        return {t.name: float(value) for t, value in {**self.feeds, **now}.items()}

    def restore(self, state: Mapping[str, float]) -> None:
        """Set again the rates of a `state`; a single one by whatever name."""
        names = {live.rate.tensor.name for live in self.each}
        if len(names) == len(state) == 1 and not names & state.keys():
            # `fit`, or an earlier version of the program, had another name for it.
            if self.each[0].rate.kind != "schedule":
                self.each[0].set(*state.values())
            return
        for live in self.each:
            tensor = live.rate.tensor
            if tensor.name in state and live.rate.kind == "variable":
                live.set(state[tensor.name])
            elif tensor.name in state:
                dtype = tensor.dtype.base_dtype.as_numpy_dtype
                self.feeds[tensor] = np.asarray(state[tensor.name], dtype)

    def unsaved(self) -> dict[str, LiveRate]:
        """`{name: rate}` of the one rate if no variable holds it, otherwise empty."""
        if len(self.each) != 1:
            return {}
        (live,) = self.each
        rate = live.rate
        has_value = rate.default is not None or rate.tensor in self.feeds
        return {rate.tensor.op.name: live} if rate.kind == "fed" and has_value else {}


_OVERRIDDEN = Fact[OverriddenRates]("session", "rates that callbacks have set")
