"""The optimizer that a callback sees: the session's learning rate and step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import logging

from hookbridge import errors
from hookbridge.adapters.live_model import rate_checks, watched
from hookbridge.adapters.live_model.lent_optimizer import LentOptimizer
from hookbridge.adapters.live_model.mirror import eager_variable
from hookbridge.adapters.live_model.rate import LiveRate
from hookbridge.adapters.session_graph.graph_optimizers import (
    OptimizerFacts,
    optimizer_of,
)
from hookbridge.ground import compat

# What to do instead of assigning the step, or a number without a variable.
_SET_THE_STEP = (
    "Assign the global step in the session "
    "(`tf.compat.v1.train.get_global_step().load(0, session)` in a SessionRunHook), or "
    "count in the callback."
)
_USE_A_VARIABLE = (
    "Build the optimizer with a non-trainable variable or a "
    "`tf.compat.v1.placeholder_with_default` in its place, and assign or feed it from "
    "a SessionRunHook."
)


def live_optimizer(
    rates: Sequence[LiveRate], step: Callable[[], int], flavours: frozenset[str]
) -> LiveOptimizer:
    """Return the live optimizer of a graph, with its own optimizer's name.

    Args:
      rates: the learning rates of the graph, one for each optimizer.
      step: returns the global step, which is `optimizer.iterations`.
      flavours: of "keras2" and "keras3" those for whose `isinstance` it is an
        `Optimizer`.
    """
    facts = [optimizer_of(live.rate) for live in rates]
    single = facts[0] if len(facts) == 1 else OptimizerFacts()
    kind: type[LiveOptimizer] = _class_named(LiveOptimizer, single.class_name)
    poses_as = _keras_class(single.class_name, flavours) if len(facts) == 1 else None
    return kind(rates, facts, step, poses_as)


class LiveOptimizer(LentOptimizer):
    """The stand-in for the optimizer of a training graph.

    `learning_rate` (and `lr`) is an eager `tf.Variable`; to assign it sets the rate of
    the running session. With several optimizers, `optimizers` has one object for each,
    and `learning_rate` is read only: the value that all have, or NaN. `poses_as` is the
    class that `isinstance` sees.

    Another Keras model may get it as its optimizer. The files of that model then have
    no slots of it, as those of `self.model` have none.
    """

    def __init__(
        self,
        rates: Sequence[LiveRate],
        facts: Sequence[OptimizerFacts],
        step: Callable[[], int],
        poses_as: type | None = None,
    ) -> None:
        super().__init__()
        self._poses_as = poses_as
        self._rates = list(rates)
        self._facts = list(facts)
        self._step = step
        self._step_variable: Any = None
        self._set_step: Any = None
        self._common: Any = None
        is_one = len(self._facts) == 1
        self.name: str = self._facts[0].name if is_one else "Optimizer"
        self.built = True
        if len(self._facts) > 1:
            # The `TensorBoard` of Keras 3 logs the learning rate of each, by name.
            self.optimizers: list[Any] = [
                _class_named(LiveOptimizer, fact.class_name)([live], [fact], step)
                for live, fact in zip(rates, self._facts, strict=True)
            ]
        self._is_made = True

    def __setattr__(self, name: str, value: object) -> None:
        is_own = "_is_made" not in self.__dict__ or name in self.__dict__
        is_own = is_own or name.startswith("_self_")  # of a trackable object
        if not is_own and name not in ("learning_rate", "lr"):
            raise errors.LiveModelError(
                f"`model.optimizer.{name}` was set, but this callback runs in a "
                "session loop under hookbridge, where only `learning_rate` (`lr`) "
                f"can be set: the rest is in the graph. {_USE_A_VARIABLE}",
                see="model in a session",
            )
        object.__setattr__(self, name, value)

    def _posed_class(self) -> type:
        return self.__dict__.get("_poses_as") or type(self)

    # A property named `__class__` answers `isinstance`, as mocks with a spec do.
    __class__: Any = property(_posed_class)

    def _rate(self) -> LiveRate:
        """Return the one learning rate of the graph."""
        rate_checks.check_single([live.rate for live in self._rates])
        return self._rates[0]

    def _common_rate(self) -> Any:
        """Return a variable with the value that all learning rates have, or NaN."""
        values = {float(live.read()) for live in self._rates}
        value = values.pop() if len(values) == 1 else np.nan
        if self._common is None:
            several = rate_checks.several([live.rate for live in self._rates])
            logging.warning("%s It reads as NaN while they differ.", several)
            variable = eager_variable(np.float32(value), "learning_rate")
            assign = watched.refuse_assignment(variable, several)
            self._common = variable, assign
        variable, assign = self._common
        with compat.private("eager_mode")():
            assign(np.float32(value))
        return variable

    @property
    def learning_rate(self) -> Any:
        """The learning rate, an eager `tf.Variable`."""
        return self._common_rate() if len(self._rates) > 1 else self._rate().variable

    @learning_rate.setter
    def learning_rate(self, value: object) -> None:
        if callable(value) and not hasattr(value, "numpy"):
            raise rate_checks.no_schedule_error()
        self._rate().set(np.asarray(value))

    lr = learning_rate

    @property
    def iterations(self) -> Any:
        """The global step, an eager `tf.Variable` of type int64."""
        if self._step_variable is None:
            self._step_variable = eager_variable(np.int64(self._step()), "iterations")
            self._set_step = watched.refuse_assignment(
                self._step_variable,
                "`model.optimizer.iterations` was assigned, but this callback runs "
                "in a session loop under hookbridge, where it is read-only: it is "
                f"the global step, which counts the epochs. {_SET_THE_STEP}",
            )
        self.sync_iterations()
        return self._step_variable

    def live_variables(self) -> list[Any]:
        """Return the eager variables of step and rates; None for one not handed out."""
        return [self._step_variable, *(live.mirror for live in self._rates)]

    def sync_iterations(self) -> None:
        """Bring `iterations` up to date if it was handed out."""
        if self._step_variable is not None:
            with compat.private("eager_mode")():
                self._set_step(self._step())

    def build(self, variables: Any) -> None:
        """Do nothing: a graph's optimizer has its variables already."""

    def get_config(self) -> dict[str, Any]:
        """Name, learning rate and hyperparameters of the graph's optimizer."""
        if len(self._facts) > 1:
            return {o.name: o.get_config() for o in self.optimizers}
        config: dict[str, Any] = {"name": self.name}
        for live, fact in zip(self._rates, self._facts, strict=True):
            config["learning_rate"] = _shortest(live.read())
            for name, source in fact.hyperparameters.items():
                config[name] = _shortest(live.read_hyperparameter(name, source))
        return config

    def __getattr__(self, name: str) -> Any:
        if name == "_learning_rate" and len(self._rates) == 1:
            # Where the `TensorBoard` of Keras 2 looks for a schedule.
            (live,) = self._rates
            if live.rate.kind == "schedule" and self._poses_as is not None:
                return _schedule_class()(live)
        if name in ("learning_rate", "lr"):
            # Python comes here only if the property raised an AttributeError: this
            # raises it again, in place of the error below.
            return self._rate().variable
        if name in ("variables", "weights") and compat.running_locals("h5_optimizer"):
            self.say_unsaved()
            return []
        raise errors.LiveModelError(
            f"`model.optimizer.{name}` was asked for, but this callback runs in a "
            "session loop under hookbridge, where `model.optimizer` offers "
            "`learning_rate`, `lr`, `iterations`, `get_config()` and `name`. Read "
            "other optimizer state from the graph with a SessionRunHook.",
            see="model in a session",
        )


def _shortest(value: object) -> float:
    """Return the shortest number: 0.01 for the float32 that is 0.009999999776482582."""
    return float(str(np.asarray(value)[()]))


@functools.cache
def _class_named(base: Any, name: str) -> Any:
    return type(name, (base,), {"__module__": base.__module__})


@functools.cache
def _keras_class(name: str, flavours: frozenset[str]) -> type | None:
    """Return a class of that name below the optimizers of these Keras versions."""
    bases = tuple(
        keras.optimizers.Optimizer
        for keras in compat.keras_flavours()
        if ("keras3" if compat.is_keras3(keras) else "keras2") in flavours
    )
    return type(name, bases, {}) if bases else None


@functools.cache
def _schedule_class() -> Any:
    """Return a schedule of Keras 2 that tells the learning rate of the next step."""
    keras = next(k for k in compat.keras_flavours() if not compat.is_keras3(k))

    class LiveSchedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc, name-defined]
        def __init__(self, live: LiveRate) -> None:
            self._live = live

        def __call__(self, step: object) -> Any:
            return self._live.read_for_next_step()

    return LiveSchedule
