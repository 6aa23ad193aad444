"""A learning rate of a session as an eager variable that callbacks read and set."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_model import watched
from hookbridge.adapters.live_model.mirror import eager_variable
from hookbridge.adapters.session_graph import (
    graph_ops,
    learning_rate,
    session_variables,
)
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.ground import compat
from hookbridge.ground.protocols import Session


class OverriddenRates(dict[Any, Any]):
    """`{tensor: value}` of one session, for the callbacks of all `as_hooks` calls.

    A session takes the feed of a tensor from one hook only. That is a hook of the
    `as_hooks` call that joined last: its `before_run` comes after the others', so its
    feed has what their callbacks set as the step begins.
    """

    def __init__(self) -> None:
        super().__init__()
        # `{tensor: variable}` of the rates that callbacks have assigned.
        self.assigned: dict[Any, Any] = {}
        self._feeder: weakref.ref[Any] | None = None
        self._copies: dict[Any, tuple[Any, ...]] = {}

    def feed_dict(self) -> dict[Any, Any]:
        """Return the feeds of a step."""
        # Each rate is fed under all its keys. So a `MonitoredSession` sees that a hook
        # feeds the same rate, by whatever key, and says so as for any two hooks.
        feeds: dict[Any, Any] = {}
        for tensor, value in self.items():
            if tensor not in self._copies:
                self._copies[tensor] = learning_rate.copies(tensor)
            for copy in self._copies[tensor]:
                fed = np.asarray(value, copy.dtype.base_dtype.as_numpy_dtype)
                feeds[copy] = feeds[copy.name] = fed
        return feeds

    def feed_from(self, feeder: object) -> None:
        """Let a run feed from now on, in the place of the one that did so before."""
        self._feeder = weakref.ref(feeder)

    def is_fed_by(self, feeder: object) -> bool:
        """Return whether a run feeds what callbacks have set."""
        return self._feeder is not None and self._feeder() is feeder


class LiveRate(watched.UseListener):
    """One learning rate of a session, read as the next step will use it.

    A variable is assigned in the session; a constant or placeholder is overridden by a
    feed from the next step on. What is set before there is a session waits for it.

    A schedule is read as the callbacks' Keras reads it: in Keras 2 the value of the
    last step, and what is assigned has no effect. `step` returns the global step for
    callbacks of Keras 2, and is None for others.
    """

    def __init__(
        self,
        rate: LearningRate,
        session: Callable[[], Any],
        touched: set[LiveRate],
        step: Callable[[], int] | None = None,
    ) -> None:
        self.rate = rate
        self.feeds: OverriddenRates = OverriddenRates()  # see `LiveRates.feeds`
        self._touched = touched
        self.fed_by_loop: Any = None  # what the loop itself fed in the last step
        self._dtype = rate.tensor.dtype.base_dtype.as_numpy_dtype
        self._session = session
        self.mirror: Any = None  # the eager variable, or None before it was asked for
        self._known: Any = None
        # Within an event: whether the mirror's value is older than the event.
        self._is_stale = False
        # Whether the mirror's use is not seen: a compiled function has its handle.
        self._is_captured = False
        # What a variable is set to as soon as there is a session, or None.
        self._waiting: Any = None
        self._undo: Callable[[], None] | None = None
        # The variable of Keras 2 beside a schedule: the step's number, or None.
        self._step_of_schedule = step if rate.kind == "schedule" else None
        self._assigned: tuple[int, Any] | None = None

    def read(self) -> Any:
        """Return the present value as a numpy scalar, as the callbacks' Keras does."""
        if self._step_of_schedule is None or self._session() is None:
            return self.of_next_step()
        step = self._step_of_schedule()
        if self._assigned is not None and self._assigned[0] == step:
            return self._assigned[1]
        feeds = dict.fromkeys(self.rate.steps, max(step - 1, 0))
        return _computed(self.rate, self._session(), feeds)

    def of_next_step(self) -> Any:
        """Return the value that the next step will use, as a numpy scalar."""
        rate = self.rate
        if rate.tensor in self.feeds:
            return np.asarray(self.feeds[rate.tensor])
        if self.fed_by_loop is not None:
            return np.asarray(self.fed_by_loop, self._dtype)
        if self._waiting is not None and self._session() is None:
            return self._waiting
        return value_of(rate, self._session())

    def value_beside(self, number: LearningRate) -> Any:
        """Return the present value of another number of the same optimizer."""
        return value_of(number, self._session())

    @property
    def variable(self) -> Any:
        """An eager `tf.Variable` with the present value; assigning sets the rate."""
        self.push()  # keeps what was assigned to it earlier in this event
        if self.mirror is None:
            self._known = self.read()
            self.mirror = eager_variable(self._known, "learning_rate")
            watched.watch(self.mirror, self)
        else:
            self._pull()
        return self.mirror

    def about_to_use(self) -> None:
        """Note that the mirror's value is about to be read or assigned."""
        if self._is_stale:
            self._pull()
        self._touched.add(self)
        if not tf.executing_eagerly():
            self._is_captured = True

    def _pull(self) -> None:
        self._show(self.read())

    def _show(self, value: object) -> None:
        self._is_stale = False
        self._known = value
        if self.mirror is not None:
            with compat.private("eager_mode")():
                self.mirror.assign(value)

    def begin_event(self) -> None:
        """From here on the mirror is brought up to date when it is used."""
        if self.mirror is not None:
            self._is_stale = True
            if self._is_captured:
                self._pull()

    def end_event(self) -> None:
        """Between events the mirror keeps its last value: there may be no session."""
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
            self._assigned = self._step_of_schedule(), value
            self._known = value
        else:
            self.set(value)

    def set(self, value: object) -> None:
        """Set the learning rate from the next step on.

        Without a session yet, the value of a variable waits for a `push` with one. A
        schedule raises `TypeError`, as in Keras.
        """
        rate = self.rate
        value = np.asarray(value, self._dtype)
        if rate.kind == "schedule":
            raise TypeError(
                # Keras's own words: programs look for them.
                "This optimizer was created with a `LearningRateSchedule` object as "
                "its `learning_rate` constructor argument, hence its learning rate is "
                "not settable. If you need the learning rate to be settable, you "
                "should instantiate the optimizer with a float `learning_rate` "
                f'argument. (In the graph "{rate.tensor.name}" is computed.)'
            )
        if rate.kind == "fed" and not rate.tensor.graph.is_feedable(rate.tensor):
            raise errors.LiveModelError(
                f'The learning rate "{rate.tensor.name}" is a constant that '
                "TensorFlow has already folded into other ops, so hookbridge cannot "
                "set it. Build the optimizer with a variable "
                "(`tf.compat.v1.get_variable(..., trainable=False)`) or a "
                "`tf.compat.v1.placeholder_with_default`.",
                see="model in a session",
            )
        if rate.kind == "variable" and self._session() is None:
            self._waiting = value
            self._show(value)
            return
        if self._undo is None:
            self._undo = self._back_to_now()
        if rate.kind == "variable":
            session_variables.write(self._session(), [(rate.variable, value)])
            self.feeds.assigned[rate.tensor] = rate.variable
        else:
            self.feeds[rate.tensor] = value
        self._show(value)

    def _back_to_now(self) -> Callable[[], None]:
        tensor, session = self.rate.tensor, self._session()
        if self.rate.kind == "variable":
            pairs = [(self.rate.variable, session.run(tensor))]
            return lambda: session_variables.write(session, pairs)
        if tensor not in self.feeds:
            return lambda: self.feeds.pop(tensor, None)
        value = self.feeds[tensor]
        return lambda: self.feeds.update({tensor: value})

    def begin_epoch(self) -> None:
        """`undo_epoch` takes back what is set from here on."""
        self._undo = None

    def undo_epoch(self) -> None:
        """Take back what was set since `begin_epoch`: it was set in an earlier run."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()
            self._pull()


def value_of(rate: LearningRate, session: Session | None) -> Any:
    """Return the value of a rate that nobody has set, as a numpy scalar.

    Args:
      rate: a learning rate, or another number of an optimizer.
      session: the session, or None before there is one: then a value that only a
        session has is NaN.
    """
    if rate.default is not None:
        return np.asarray(rate.default)
    if session is not None:
        return _computed(rate, session, {})
    if rate.kind == "variable":
        initial = graph_ops.constant_value(rate.variable.initializer.inputs[1])
        if initial is not None:
            return initial
    return np.full((), np.nan, rate.tensor.dtype.base_dtype.as_numpy_dtype)


def _computed(rate: LearningRate, session: Session, feeds: Mapping[Any, Any]) -> Any:
    """Return the value of a rate in the graph, from a run outside a step."""
    try:
        return np.asarray(session.run(rate.tensor, feeds))
    except tf.errors.InvalidArgumentError as e:
        raise errors.LiveModelError(
            f'The learning rate "{rate.tensor.name}" has no value outside a '
            "training step: it depends on something that has to be fed. Make it a "
            "`tf.compat.v1.placeholder_with_default` or a variable.",
            see="model in a session",
        ) from e
