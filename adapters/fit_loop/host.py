"""`fit`, `evaluate` and `predict` of a Keras model as the host of hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.live import Live
from hookbridge.adapters.fit_loop.placement import Placement
from hookbridge.adapters.fit_loop.step import KeptFunction, StepFunction
from hookbridge.adapters.fit_loop.step_feeds import NO_FEEDS
from hookbridge.adapters.hooked_loop.host import Host
from hookbridge.adapters.hooked_loop.modes import PREDICT, TRAIN, Mode
from hookbridge.adapters.hooked_loop.monitored import END_OF_DATA
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession

v1 = tf.compat.v1


class FitHost(Host):
    """One `fit`, `evaluate` or `predict` in one process, or a user's own loop."""

    def __init__(self, model: Any, place: Callable[..., Any] = Placement) -> None:
        self._live = Live(model, self._make_session)
        super().__init__(model, self._live)
        self._place_of = place
        self.place: Any = None
        self._args: tuple[Any, ...] = ()
        self._outputs: Any = None
        self._has_outputs = False
        self._is_stopped = False
        # Whether a call makes several steps; the step's own count is read only then.
        self._counts = False

    def attach(self, loop: Any) -> None:
        super().attach(loop)
        self.place = self._place_of(self.model, loop, self._make_step)

    @property
    def native_step(self) -> Any:  # type: ignore[override]
        return self.place.step

    def _make_step(
        self, mode: Mode, make: Callable[..., Any], owner: Any = None
    ) -> Any:
        """The run's step; None to take no part in the loop."""
        earlier = getattr(self.model if owner is None else owner, mode.function)
        if isinstance(earlier, KeptFunction):
            return earlier.step
        guests = self.loop.guests
        names = {name for guest in guests for name in guest.fetched_names}
        if mode is not PREDICT and any(guest.may_fetch_loss for guest in guests):
            names.add("loss:0")
        return StepFunction(self.model, mode, make, frozenset(names), owner)

    def _make_session(self, live: Live) -> LiveSession:
        return LiveSession(
            live.graph,
            live.global_step,
            self._run_step,
            live.last_values,
            self.place.step.functions,
        )

    # -- steps -----------------------------------------------------------------------

    def prepare(self, args: tuple[Any, ...]) -> None:
        if self._is_stopped:
            # Keras 2 has no other way to end `evaluate` and `predict`.
            raise tf.errors.OutOfRangeError(None, None, "A hook asked for a stop.")
        self._live.outside = v1.get_default_graph()
        self._args = args

    def open(self) -> int:
        self.place.step.discover(*self._args)
        steps = getattr(self.model, "_steps_per_execution", None)
        if steps is None:
            steps = getattr(self.model, "steps_per_execution", 1)
        several = live_variables.as_int(1 if steps is None else steps) > 1
        self._counts = several and self.place.mode is TRAIN
        return self._live.open(self.place.step.names)

    def run(self, monitored: Any) -> Any:
        monitored.run(self._live.graph.loop_fetches)
        self._has_outputs = True
        return self._take_outputs()

    def _take_outputs(self) -> Any:
        outputs, self._outputs = self._outputs, None
        return outputs

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        live, step = self._live, self.place.step
        into_step = live.into_step(program) if program.feeds else NO_FEEDS
        with live.outside.as_default(), live.eager_mode():
            before = step.steps_made if self._counts else 0
            try:
                fetched: list[Any]
                outputs, fetched, values = step.run(
                    self._args, program, feeds, live.graph.tapped, into_step
                )
            except END_OF_DATA:
                self.data_ended = True
                raise
            if self._counts:
                live.global_step.add(step.steps_made - before)
            elif self.place.mode is TRAIN:
                live.global_step.add(1)
        live.last_values.update(values)
        self._outputs = outputs
        return fetched

    # -- ends ------------------------------------------------------------------------

    def stop(self) -> None:
        mode = self.place.mode
        assert mode is not None
        if mode is TRAIN or hasattr(self.model, mode.stop):
            setattr(self.model, mode.stop, True)
        self._is_stopped = mode is not TRAIN

    def stopped_by(self, error: BaseException) -> Any:
        outputs = self._take_outputs()
        if outputs is not None:
            return outputs  # `after_run` raised: the step has been made
        return self.place.without_step(error, is_first=not self._has_outputs)

    # -- the model -------------------------------------------------------------------

    def step_aside(self) -> None:
        self._live.remember()
        self.place.step_aside()

    def come_back(self) -> None:
        self._live.recall()
        self.place.come_back()

    def leave(self) -> None:
        self.place.leave()
        # An iterator that is left to the garbage collector can hold the process up
        # for a minute (docs/decisions/0005-iterators-die-young.md).
        self._args = ()
