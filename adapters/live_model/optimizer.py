"""The optimizer that a callback sees: the session's learning rate and step."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hookbridge import compat, errors
from hookbridge.adapters.live_model import mirrors
from hookbridge.adapters.live_model import overridden_rates as fed_rates
from hookbridge.adapters.live_model import watched as watched_variable
from hookbridge.adapters.session_graph import variables as session_variables
from hookbridge.adapters.session_graph.learning_rate import LearningRate


class LiveOptimizer:
    """Stands for the optimizer of a session's training graph.

    `learning_rate` (and `lr`) is an eager `tf.Variable`: reading it gives the value
    the next step will use, assigning to it or to the attribute sets that value in
    the running session. A variable is assigned; a constant or placeholder is
    overridden by a feed from the next step on.

    Args:
      rates: the learning rates found in the graph.
      session: a function that returns the raw session, or None before there is one.
      step: a function that returns the global step.
      poses_as: the Keras optimizer class that `isinstance` shall see, or None. The
        TensorBoard of Keras 3 writes the learning rate of such an optimizer only.
    """

    def __init__(
        self,
        rates: Sequence[LearningRate],
        session: Callable[[], Any],
        step: Callable[[], int],
        poses_as: type | None = None,
    ) -> None:
        self._poses_as = poses_as
        self._rates = tuple(rates)
        self._session = session
        self._step = step
        self._mirror: Any = None
        self._known: Any = None
        # Within an event: whether the mirror's value is older than the event.
        self._is_stale = False
        self._events = 0  # how many are going on: a validation's may be within one
        # Whether the mirror's use is not seen: a compiled function has its handle.
        self._is_captured = False
        self._iterations: Any = None
        self._set_iterations: Any = None
        self.name = "LiveOptimizer"
        self.built = True
        self.feeds = fed_rates.FedRates()
        # What the loop itself fed for the learning rate in the last step, or None.
        self.fed_by_loop: Any = None
        self._undo: Callable[[], None] | None = None
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        known = "_is_made" not in self.__dict__ or name in self.__dict__
        if not known and name not in ("learning_rate", "lr"):
            raise errors.LiveModelError(
                f"`model.optimizer.{name}` was set, but this callback runs in a "
                "session loop under hookbridge, where `learning_rate` (`lr`) is all "
                f"that can be set: the rest is in the graph. {_way_out(name)}"
            )
        super().__setattr__(name, value)

    # A property named `__class__` answers `isinstance`, as mocks with a spec do.
    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        return self.__dict__.get("_poses_as") or LiveOptimizer

    @property
    def rate(self) -> LearningRate:
        """The one learning rate of the graph.

        Raises:
          errors.LiveModelError: there is none, or more than one.
        """
        if len(self._rates) == 1:
            return self._rates[0]
        if not self._rates:
            raise errors.LiveModelError(
                "hookbridge found no learning rate in this graph: no update op of an "
                "optimizer has one, and no variable is called `learning_rate`. Name "
                "it: `as_hooks(..., learning_rate=<tensor, variable or name>)`."
            )
        names = ", ".join(f'"{r.tensor.name}"' for r in self._rates)
        raise errors.LiveModelError(
            f"hookbridge found {len(self._rates)} learning rates in this graph "
            f"({names}) and cannot know which one is meant. Name it: "
            "`as_hooks(..., learning_rate=...)`."
        )

    def _read(self) -> Any:
        rate, session = self.rate, self._session()
        dtype = rate.tensor.dtype.base_dtype.as_numpy_dtype
        if rate.tensor in self.feeds:
            return self.feeds[rate.tensor]
        if self.fed_by_loop is not None:
            return np.asarray(self.fed_by_loop, dtype)
        if rate.default is not None:
            return rate.default
        if session is None:
            return np.zeros((), dtype)
        import tensorflow as tf

        try:
            return session.run(rate.tensor)
        except tf.errors.InvalidArgumentError as e:
            raise errors.LiveModelError(
                f'The learning rate "{rate.tensor.name}" has no value outside a '
                "training step: it depends on something that has to be fed. Make it a "
                "`tf.compat.v1.placeholder_with_default` or a variable."
            ) from e

    @property
    def learning_rate(self) -> Any:
        """The learning rate, an eager `tf.Variable`."""
        self.push()  # what was assigned to it earlier in this event
        value = np.asarray(self._read())
        with compat.private("eager_mode")():
            if self._mirror is None:
                self._mirror = mirrors.eager_variable(value, "learning_rate")
                listener = functools.partial(_tell, weakref.ref(self))
                watched_variable.watch(self._mirror, listener)
            else:
                self._is_stale = False
                self._mirror.assign(value)
        self._known = value
        return self._mirror

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value) and not hasattr(value, "numpy"):
            raise errors.LiveModelError(
                "hookbridge cannot replace the learning rate of a running graph by a "
                "schedule. Use the `LearningRateScheduler` callback, or build the "
                "schedule into the graph."
            )
        self._write(np.asarray(value))

    lr = learning_rate

    def about_to_use(self) -> None:
        """The mirror of the learning rate is about to be read or assigned."""
        import tensorflow as tf

        if self._is_stale:
            self._pull()
        if not tf.executing_eagerly():
            self._is_captured = True

    def _pull(self) -> None:
        self._is_stale = False
        self._known = np.asarray(self._read())
        with compat.private("eager_mode")():
            self._mirror.assign(self._known)

    @property
    def iterations(self) -> Any:
        """The global step, an eager `tf.Variable` of type int64."""
        if self._iterations is None:
            self._iterations = mirrors.eager_variable(
                np.int64(self._step()), "iterations"
            )
            self._set_iterations = watched_variable.refuse_assignment(
                self._iterations,
                "`model.optimizer.iterations` was assigned, but this callback runs in "
                "a session loop under hookbridge, where it is only read: it is the "
                f"global step, by which epochs are counted. {_way_out('iterations')}",
            )
        self._sync_iterations()
        return self._iterations

    def begin_event(self) -> None:
        """Brings what was handed out up to date, the learning rate when it is used."""
        self._events += 1
        self._sync_iterations()
        if self._mirror is not None:
            self._is_stale = True
            if self._is_captured:
                self._pull()

    def end_event(self) -> None:
        """What is used between events has the value of the last event it was used in.

        There may be no session any more to read it from.
        """
        self._events -= 1
        if not self._events:
            self._is_stale = False

    def _sync_iterations(self) -> None:
        if self._iterations is not None:
            with compat.private("eager_mode")():
                self._set_iterations(self._step())

    def push(self) -> None:
        """Makes the session use the learning rate if a callback changed it.

        Raises:
          TypeError: the learning rate is a schedule, as in Keras.
        """
        if self._mirror is None or self._is_stale:
            return
        with compat.private("eager_mode")():
            value = self._mirror.numpy()
        if value != self._known and not (np.isnan(value) and np.isnan(self._known)):
            self._write(value)

    def _write(self, value: Any) -> None:
        rate = self.rate
        dtype = rate.tensor.dtype.base_dtype.as_numpy_dtype
        value = np.asarray(value, dtype)
        if rate.kind == "schedule":
            raise TypeError(
                "This optimizer was created with a schedule as its learning rate "
                f'("{rate.tensor.name}" is computed in the graph), hence its learning '
                "rate is not settable. If you need the learning rate to be settable, "
                "build the optimizer with a float or a variable."
            )
        if rate.kind == "fed" and not rate.tensor.graph.is_feedable(rate.tensor):
            raise errors.LiveModelError(
                f'The learning rate "{rate.tensor.name}" is a constant that '
                "TensorFlow has already folded into other ops, so hookbridge cannot "
                "set it. Build the optimizer with a variable "
                "(`tf.compat.v1.get_variable(..., trainable=False)`) or a "
                "`tf.compat.v1.placeholder_with_default`."
            )
        if self._undo is None:
            self._undo = self._back_to_now(rate)
        if rate.kind == "variable":
            session_variables.write(self._session(), [(rate.variable, value)])
        else:
            self.feeds[rate.tensor] = value
        self._known = value
        if self._mirror is not None:
            self._is_stale = False
            with compat.private("eager_mode")():
                self._mirror.assign(value)

    def join(self, session: Any) -> fed_rates.FedRates:
        """Shares the rates that are fed with all callbacks of a session."""
        before, self.feeds = self.feeds, fed_rates.of(session)
        for tensor, value in before.items():
            self.feeds.setdefault(tensor, value)
        return self.feeds

    def _back_to_now(self, rate: LearningRate) -> Callable[[], None]:
        tensor, session = rate.tensor, self._session()
        if rate.kind == "variable":
            value = session.run(tensor)
            pairs = [(rate.variable, value)]
            return lambda: session_variables.write(session, pairs)
        if tensor not in self.feeds:
            return lambda: self.feeds.pop(tensor, None)
        value = self.feeds[tensor]
        return lambda: self.feeds.update({tensor: value})

    def begin_epoch(self) -> None:
        """What is set from here on is taken back by `undo_epoch`."""
        self._undo = None

    def undo_epoch(self) -> None:
        """The epoch that has begun has not taken place."""
        if self._undo is not None:
            self._undo()
            self._undo = None
            if self._mirror is not None:
                self.learning_rate  # noqa: B018 - brings the mirror up to date

    def state(self) -> dict[str, float]:
        """The rates that are fed: a checkpoint of the variables has not got them."""
        return {tensor.name: float(value) for tensor, value in self.feeds.items()}

    def restore(self, state: Mapping[str, float]) -> None:
        """Feeds the rates that `state` returned, where the graph still has them."""
        for rate in self._rates:
            if rate.tensor.name in state:
                dtype = rate.tensor.dtype.base_dtype.as_numpy_dtype
                self.feeds[rate.tensor] = np.asarray(state[rate.tensor.name], dtype)

    def fed_rate(self) -> dict[str, Any]:
        """`{name: learning_rate}` if it is fed: no variable of the session holds it."""
        if len(self._rates) != 1 or self.rate.kind != "fed":
            return {}
        if self.rate.default is None and self.rate.tensor not in self.feeds:
            return {}
        return {self.rate.tensor.op.name: self.learning_rate}

    def build(self, variables: Any) -> None:
        """Does nothing: a graph's optimizer has its variables."""

    def get_config(self) -> dict[str, Any]:
        """Name and learning rate."""
        return {"name": self.name, "learning_rate": float(self._read())}

    def __getattr__(self, name: str) -> Any:
        raise errors.LiveModelError(
            f"`model.optimizer.{name}` was asked for, but this callback runs in a "
            "session loop under hookbridge, where `model.optimizer` offers "
            "`learning_rate`, `lr`, `iterations`, `get_config()` and `name`. Read "
            "other optimizer state from the graph with a SessionRunHook."
        )


def _way_out(name: str) -> str:
    if name == "iterations":
        return (
            "Assign the global step in the session "
            "(`tf.compat.v1.train.get_global_step().load(0, session)` in a "
            "SessionRunHook), or count in the callback."
        )
    return (
        "Build the optimizer with a non-trainable variable or a "
        "`tf.compat.v1.placeholder_with_default` in its place, and assign or feed it "
        "from a SessionRunHook."
    )


def _tell(optimizer: weakref.ref[LiveOptimizer]) -> None:
    told = optimizer()
    if told is not None:
        told.about_to_use()
