"""A learning rate of a session as an eager variable that callbacks read and set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge.adapters.live_model import rate_checks, watched
from hookbridge.adapters.live_model.mirror import eager_variable
from hookbridge.adapters.session_graph import graph_ops, session_variables
from hookbridge.adapters.session_graph.learning_rate import GraphNumber, LearningRate
from hookbridge.ground import compat
from hookbridge.ground.protocols import Session


@dataclasses.dataclass(eq=False)
class RateChanges:
    """What callbacks have set in a session, shared by all `as_hooks` calls in it."""

    # The values that each step is fed, by the tensors in whose place they are.
    fed: dict[Any, Any] = dataclasses.field(default_factory=dict)
    # The variables that have got their values already, by the tensors that read them.
    assigned: dict[Any, Any] = dataclasses.field(default_factory=dict)

    def share(self, others: RateChanges) -> None:
        """Have the same as others from here on; what they have fed comes first."""
        others.fed.update({**self.fed, **others.fed})
        others.assigned.update(self.assigned)
        self.fed, self.assigned = others.fed, others.assigned


class AssignedInStep(NamedTuple):
    """What was assigned to a schedule, which shows it until the next step."""

    step: int
    value: Any


class LiveRate(watched.UseListener):
    """One learning rate of a session, read as the next step will use it.

    A variable is assigned in the session; a constant or placeholder is overridden by a
    feed from the next step on. What is set before there is a session waits for it.

    A schedule is read as the callbacks' Keras reads it: in Keras 2 the value of the
    last step, and what is assigned has no effect.

    Args:
      rate: where it is in the graph.
      session: returns the session, or None before there is one.
      changes: what callbacks have set in the session.
      touched: the rates used since the last `push`; it adds itself.
      step: returns the global step, for callbacks of Keras 2; None for others.
    """

    def __init__(
        self,
        rate: LearningRate,
        session: Callable[[], Any],
        changes: RateChanges,
        touched: set[LiveRate],
        step: Callable[[], int] | None,
    ) -> None:
        self.rate = rate
        self.mirror: Any = None  # the eager variable, or None before it was asked for
        self.fed_by_loop: Any = None  # what the loop itself fed in the last step
        self._session = session
        self._changes = changes
        self._touched = touched
        self._dtype = rate.tensor.dtype.base_dtype.as_numpy_dtype
        self._known: Any = None
        # Within an event: whether the mirror's value is older than the event.
        self._is_stale = False
        # Whether the mirror's use is not seen: a compiled function has its handle.
        self._is_captured = False
        # What a variable is set to as soon as there is a session, or None.
        self._waiting: Any = None
        # Returns the global step for a schedule under Keras 2, which shows the value of
        # the last step; None for all other rates.
        self._step_of_schedule = step if rate.kind == "schedule" else None
        # What a callback has assigned to such a schedule, and in which step: Keras 2
        # shows it until the next one.
        self._assigned: AssignedInStep | None = None

    def read(self) -> Any:
        """Return the present value as a numpy scalar, as the callbacks' Keras does."""
        session = self._session()
        if self._step_of_schedule is None or session is None:
            return self.read_for_next_step()
        step = self._step_of_schedule()
        if self._assigned is not None and self._assigned.step == step:
            return self._assigned.value
        feeds = dict.fromkeys(self.rate.steps, max(step - 1, 0))
        return _run_outside_step(self.rate, session, feeds)

    def read_for_next_step(self) -> Any:
        """Return the value that the next step will use, as a numpy scalar."""
        session = self._session()
        if self.rate.tensor in self._changes.fed:
            return np.asarray(self._changes.fed[self.rate.tensor])
        if self.fed_by_loop is not None:
            return np.asarray(self.fed_by_loop, self._dtype)
        if self._waiting is not None and session is None:
            return self._waiting
        return value_of(self.rate, session)

    def read_hyperparameter(self, name: str, number: GraphNumber) -> Any:
        """Return the present value of another number of the same optimizer."""
        return value_of(number, self._session(), f"hyperparameter `{name}`")

    @property
    def variable(self) -> Any:
        """An eager `tf.Variable` with the present value; assigning sets the rate."""
        self.push()  # keeps what was assigned to it earlier in this event
        if self.mirror is None:
            self._known = self.read()
            self.mirror = eager_variable(self._known, "learning_rate")
            watched.watch(self.mirror, self)
        else:
            self.refresh()
        return self.mirror

    def about_to_use(self) -> None:
        """Note that the mirror's value is about to be read or assigned."""
        if self._is_stale:
            self.refresh()
        self._touched.add(self)
        if not tf.executing_eagerly():
            self._is_captured = True

    def refresh(self) -> None:
        """Bring the mirror up to date, if it was asked for."""
        if self.mirror is not None:
            self._show(self.read())

    def _show(self, value: object) -> None:
        self._is_stale = False
        self._known = value
        if self.mirror is not None:
            with compat.private("eager_mode")():
                self.mirror.assign(value)

    def begin_event(self) -> None:
        """Let the mirror be brought up to date when it is used from here on."""
        if self.mirror is not None:
            self._is_stale = True
            if self._is_captured:
                self.refresh()

    def end_event(self) -> None:
        """Let the mirror keep its value between events: there may be no session."""
        self._is_stale = False

    def push(self) -> None:
        """Make the session use the value if a callback has assigned another one."""
        if self._waiting is not None and self._session() is not None:
            value, self._waiting = self._waiting, None
            self.set(value)
        if self.mirror is None or self._is_stale:
            return
        with compat.private("eager_mode")():
            value = self.mirror.numpy()
        if value == self._known or (np.isnan(value) and np.isnan(self._known)):
            return
        if self._step_of_schedule is not None:
            self._assigned = AssignedInStep(self._step_of_schedule(), value)
            self._known = value
        else:
            self.set(value)

    def drop(self) -> None:
        """Forget what was assigned since the last `push`."""
        if self.mirror is not None:
            with compat.private("eager_mode")():
                self._known = self.mirror.numpy()

    def set(self, value: object) -> None:
        """Set the learning rate from the next step on.

        Without a session yet, the value of a variable waits for a `push` with one.

        Raises:
          TypeError: it is a schedule, as in Keras.
          errors.LiveModelError: TensorFlow feeds no value in its place.
        """
        rate_checks.check_set(self.rate)
        rate, session = self.rate, self._session()
        value = np.asarray(value, self._dtype)
        if rate.kind == "variable" and session is None:
            self._waiting = value
            self._show(value)
            return
        if rate.kind == "variable":
            session_variables.write(session, [(rate.variable, value)])
            self._changes.assigned[rate.tensor] = rate.variable
        else:
            self._changes.fed[rate.tensor] = value
        self._show(value)


def value_of(
    number: GraphNumber, session: Session | None, called: str = "learning rate"
) -> Any:
    """Return the value of a number that no callback has set, as a numpy scalar.

    Args:
      number: a learning rate, or another number of an optimizer.
      session: the session, or None before there is one: then a value that only a
        session has is NaN.
      called: what an error calls the number.
    """
    if number.default is not None:
        return np.asarray(number.default)
    if session is not None:
        return _run_outside_step(number, session, {}, called)
    if number.kind == "variable":
        initial = graph_ops.constant_value(number.variable.initializer.inputs[1])
        if initial is not None:
            return initial
    return np.full((), np.nan, number.tensor.dtype.base_dtype.as_numpy_dtype)


def _run_outside_step(
    number: GraphNumber,
    session: Session,
    feeds: Mapping[Any, Any],
    called: str = "learning rate",
) -> Any:
    """Return the value of a number in the graph, from a run outside a step."""
    try:
        return np.asarray(session.run(number.tensor, feeds))
    except tf.errors.InvalidArgumentError as e:
        raise rate_checks.no_value_error(number, called) from e
