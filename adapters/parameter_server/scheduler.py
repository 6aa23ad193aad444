"""Schedules the steps of one `fit`, and gives the session of hooks their values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.fit_graph import FitGraphPart
from hookbridge.adapters.fit_loop.tapped_function import NO_FEEDS, StepFeeds
from hookbridge.adapters.live_session.program import SessionProgram, SplitProgram
from hookbridge.adapters.parameter_server.cluster_session import ClusterSession
from hookbridge.adapters.parameter_server.event_queue import EventQueue
from hookbridge.adapters.parameter_server.scheduled_step import ScheduledStep
from hookbridge.adapters.parameter_server.step_values import StepLogs, StepValue
from hookbridge.adapters.parameter_server.steps_in_flight import StepsInFlight
from hookbridge.ground import compat
from hookbridge.ground.patching import temporarily
from hookbridge.ground.protocols import Arguments, Context, KerasModel
from hookbridge.ground.step_errors import END_OF_DATA
from hookbridge.ground.structures import RecentlyUsed

_LATE_FEED = (
    "A hook feeds a tensor of the training step, or `learning_rate:0`, and did not in "
    "the first step: under `ParameterServerStrategy` the step has been scheduled "
    "already. Call `hb.as_callbacks(..., max_lag=0)`, or feed from the first step on."
)
_LATE_FETCH = (
    "A hook fetches `{}`, a tensor of the training step that nobody asked for when the "
    "step was scheduled. Look it up in `begin` with "
    "`tf.compat.v1.get_default_graph().get_tensor_by_name`, or call "
    "`hb.as_callbacks(..., max_lag=0)`."
)


class Scheduler:
    """The scheduled steps of one run, those whose values are due among them.

    Args:
      model: the model of the run.
      graph: its live graph.
      events: the events that wait for the values of a step.
    """

    def __init__(
        self, model: KerasModel, graph: FitGraphPart, events: EventQueue
    ) -> None:
        self._graph = graph
        self._events = events
        self._args: Arguments = ()
        self._loop_graph: Any = None  # the graph of the native loop
        # The default graph of calls before and after a step: the live one is final.
        self._graph_of_calls = tf.Graph()
        self._eager_mode = compat.private("eager_mode")
        self._halves = RecentlyUsed()  # programs as `SplitProgram`
        self._session: ClusterSession | None = None
        self.in_flight: StepsInFlight = StepsInFlight(model)
        self.outputs: Any = None  # what Keras gets for the step that was scheduled
        # A step scheduled earlier whose events are being delivered now, or None.
        self.present: StepValue | None = None
        self.data_ended: bool = False

    def prepare(self, step: ScheduledStep, args: Arguments) -> None:
        """Take what the native loop passes to its step."""
        self.data_ended = False
        renewed = self._session if self.is_another(step) else None
        self._step, self._args = step, args
        self._loop_graph = tf.compat.v1.get_default_graph()
        if renewed is not None:
            self._renew(renewed)

    def is_another(self, step: ScheduledStep) -> bool:
        """Return whether a callback has changed the step since hooks have begun."""
        return self._session is not None and step is not self._step

    def _renew(self, session: ClusterSession) -> None:
        """Show hooks the step and the optimizer that a callback has changed."""
        self._step.discover(*self._args)
        self._graph.renew(self._step)
        session.renew(RecentlyUsed())
        self._halves = RecentlyUsed()

    def open(self) -> int:
        """Trace the step and make the graph on which hooks `begin`."""
        self._step.discover(*self._args)
        return self._graph.build(self._step)

    def make_session(self) -> ClusterSession:
        """Return a session for hooks; the first one, or that of a recovery."""
        ahead = 0 if self._session is None else self.ahead
        self.in_flight.count = self._graph.step_number + ahead
        self._session = ClusterSession(
            self._consistent,
            self._graph.live,
            self._graph.global_step,
            self._run_step,
            self._graph.last_values,
        )
        return self._session

    def schedule(
        self, into_step: StepFeeds = NO_FEEDS, feeds: Sequence[Any] = ()
    ) -> StepValue:
        """Schedule the prepared step, with the tensors that hooks have looked up."""
        graph = self._graph
        tapped = graph.live.tapped if graph.is_built else {}
        keys = tuple(sorted(set(tapped.values())))
        try:
            with self._loop_graph.as_default(), self._eager_mode():
                value = self._step.schedule(self._args, keys, into_step, feeds)
        except Exception as e:
            failure = self.in_flight.error_to_raise(e)
            self.data_ended = isinstance(failure, END_OF_DATA)
            raise failure from e
        self.in_flight.count += value.steps
        self.outputs = StepLogs(value, self._events.before_fetch)
        self._events.note_scheduled(self.outputs)
        return value

    def load(self, value: StepValue) -> dict[str, Any] | None:
        """Return the tensors of a step; None if the data ended before it."""
        result = self.in_flight.load(value)
        if result is None:
            self.data_ended = True
            return None
        self._events.last_logs, tapped = result
        return tapped

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        """Run a program around a step, which may have been scheduled earlier."""
        graph = self._graph
        into_step = graph.feeds_of_step(program)
        halves = self._halves_of(program)
        with self._graph_of_calls.as_default(), self._eager_mode():
            early = halves.before(feeds)
        value = self._step_for(into_step, feeds)
        tapped = self.load(value)
        if tapped is None:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        if not value.is_counted:  # a recovering session delivers the step twice
            value.is_counted = True
            graph.global_step.add(value.steps)
        keys = graph.live.tapped
        graph.last_values.update(
            {name: tapped[key] for name, key in keys.items() if key in tapped}
        )
        try:
            of_step = {n: tapped[keys[n]] for n in program.needed.step_tensors}
        except KeyError as e:
            raise errors.LiveSessionError(
                _LATE_FETCH.format(e.args[0]), see="parameter servers"
            ) from e
        with self._graph_of_calls.as_default(), self._eager_mode():
            return halves.after(early, of_step)

    def _halves_of(self, program: SessionProgram) -> SplitProgram:
        halves: SplitProgram | None = self._halves.get(id(program))
        if halves is None:
            halves = SplitProgram(program)  # holds the program: no other has its id
            self._halves.add(id(program), halves)
        return halves

    def _step_for(self, into_step: StepFeeds, feeds: Sequence[Any]) -> StepValue:
        """Return the step whose events are delivered now; otherwise a new one."""
        if self.present is not None:
            if into_step != NO_FEEDS:
                raise errors.LiveSessionError(_LATE_FEED, see="parameter servers")
            return self.present
        if into_step != NO_FEEDS:
            # What is fed has to be known ahead of each step.
            self._events.limit_lag(0)
        return self.schedule(into_step, feeds)

    @property
    def ahead(self) -> int:
        """The number of scheduled steps whose events hooks have not got yet."""
        graph = self._graph
        return self.in_flight.count - (graph.step_number if graph.is_built else 0)

    @contextlib.contextmanager
    def _consistent(self) -> Iterator[None]:
        """Return a context in which weights and global step are of one moment."""
        step, ahead = self._graph.global_step, self.ahead
        try:
            self.in_flight.wait()
        except END_OF_DATA:
            self.data_ended = True
            raise
        step.value += ahead
        try:
            yield
        finally:
            step.value -= ahead

    def take_outputs(self) -> Any:
        """Return what Keras gets for the step that was scheduled last, once."""
        outputs, self.outputs = self.outputs, None
        return outputs

    def presenting(self, value: StepValue) -> Context:
        """Let the session's next step be one scheduled earlier, in a context."""
        return temporarily(self, present=value)

    def leave(self) -> None:
        self.in_flight.leave()
        self._args = ()
        self.present = None
