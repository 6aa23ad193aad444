"""The optimizer that a callback sees: the session's learning rate and step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hookbridge import compat, errors
from hookbridge.adapters.live_model import mirrors, watched
from hookbridge.adapters.live_model.rates import LiveRate, LiveRates


class LiveOptimizer:
    """The stand-in for the optimizer of a training graph.

    `learning_rate` (and `lr`) is an eager `tf.Variable`; assigning to it or to the
    attribute sets the learning rate of the running session.

    Args:
      rates: the learning rates of the graph.
      step: a function that returns the global step.
      poses_as: the Keras optimizer class that `isinstance` shall see, or None. The
        TensorBoard of Keras 3 writes the learning rate of such an optimizer only.

    Attributes:
      live_rates: the learning rates of the graph.
    """

    def __init__(
        self, rates: LiveRates, step: Callable[[], int], poses_as: type | None = None
    ) -> None:
        self._poses_as = poses_as
        self.live_rates = rates
        self._step = step
        self._iterations: Any = None
        self._set_iterations: Any = None
        self.name = "LiveOptimizer"
        self.built = True
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

    def _rate(self) -> LiveRate:
        """The one learning rate of the graph.

        Raises:
          errors.LiveModelError: there is none, or more than one.
        """
        each = self.live_rates.each
        if len(each) == 1:
            return each[0]
        if not each:
            raise errors.LiveModelError(
                "hookbridge found no learning rate in this graph: no update op of an "
                "optimizer has one, and no variable is called `learning_rate`. Name "
                "it: `as_hooks(..., learning_rate=<tensor, variable or name>)`."
            )
        names = ", ".join(f'"{r.rate.tensor.name}"' for r in each)
        raise errors.LiveModelError(
            f"hookbridge found {len(each)} learning rates in this graph "
            f"({names}) and cannot know which one is meant. Name it: "
            "`as_hooks(..., learning_rate=...)`."
        )

    @property
    def learning_rate(self) -> Any:
        """The learning rate, an eager `tf.Variable`."""
        return self._rate().variable

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value) and not hasattr(value, "numpy"):
            raise errors.LiveModelError(
                "hookbridge cannot replace the learning rate of a running graph by a "
                "schedule. Use the `LearningRateScheduler` callback, or build the "
                "schedule into the graph."
            )
        self._rate().set(np.asarray(value))

    lr = learning_rate

    @property
    def iterations(self) -> Any:
        """The global step, an eager `tf.Variable` of type int64."""
        if self._iterations is None:
            self._iterations = mirrors.eager_variable(
                np.int64(self._step()), "iterations"
            )
            self._set_iterations = watched.refuse_assignment(
                self._iterations,
                "`model.optimizer.iterations` was assigned, but this callback runs in "
                "a session loop under hookbridge, where it is only read: it is the "
                f"global step, by which epochs are counted. {_way_out('iterations')}",
            )
        self.sync_iterations()
        return self._iterations

    def sync_iterations(self) -> None:
        """Brings `iterations` up to date if it was handed out."""
        if self._iterations is not None:
            with compat.private("eager_mode")():
                self._set_iterations(self._step())

    def build(self, variables: Any) -> None:
        """Does nothing: a graph's optimizer has its variables."""

    def get_config(self) -> dict[str, Any]:
        """Name and learning rate."""
        return {"name": self.name, "learning_rate": float(self._rate().read())}

    def __getattr__(self, name: str) -> Any:
        if name in ("learning_rate", "lr"):
            # The property raised an AttributeError, which would be lost here.
            return self._rate().variable
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
