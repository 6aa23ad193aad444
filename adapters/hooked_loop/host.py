"""A native loop in which hooks run: its graph, its session and its steps.

A host is put together from three parts, one for each question: what do hooks see
(`GraphPart`), which session do they get (`SessionPart`), and who makes a step
(`StepMaker`)? The rooms of the native loops have the parts, and a function that puts
them together for a run.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.hooked_loop.epoch_means import EpochMeans, MetricMeans
from hookbridge.adapters.hooked_loop.model_values import ModelValues
from hookbridge.adapters.hooked_loop.monitored import HookWithoutEnd
from hookbridge.ground.protocols import Arguments, Context, Hook, KerasModel, Session


class GraphPart(abc.ABC):
    """The graph that hooks see; `StepMaker.open` makes it."""

    @property
    @abc.abstractmethod
    def step_number(self) -> int:
        """The present global step."""

    @abc.abstractmethod
    def values(self) -> ModelValues:
        """Return what a checkpoint of the model holds of it now."""

    @property
    def can_be_read(self) -> bool:
        """Return whether `values` and `step_number` can be asked for at this moment."""
        return True

    @abc.abstractmethod
    def calling_hooks(self) -> Context:
        """Return a context in which methods of hooks are called."""

    def remember(self) -> None:  # noqa: B027 - most loops keep nothing
        """Keep what the model's next run needs, after a clean finish."""

    def suspend(self) -> None:  # noqa: B027
        """Let a loop inside this one take the model."""

    def resume(self) -> None:  # noqa: B027
        """Undo `suspend`: the loop inside has ended."""

    def leave(self) -> None:  # noqa: B027
        """Note that the run is over."""


class SessionPart(abc.ABC):
    """The sessions that hooks get, as `MonitoredSession` creates them."""

    current: Any = None  # the session; None before the first one

    @abc.abstractmethod
    def create_session(self) -> Session:
        """Make and prepare a session; called again in each recovery."""

    def end(self, hook: Hook) -> None:
        """Call the `end` of a hook, after a clean finish."""
        hook.end(self.current)


class StepMaker(abc.ABC):
    """Makes the steps of a native loop, and lets a stop reach it."""

    @property
    def step_function(self) -> Any:
        """The object whose `run` makes the native step, for profiles, or None."""
        return None

    @property
    @abc.abstractmethod
    def data_ended(self) -> bool:
        """Return whether the step met the end of the data, an error of the loop."""

    @property
    def is_apart_from_hooks(self) -> bool:
        """Return whether hooks have no part in making the next step.

        They get its events later, or never.
        """
        return False

    def install(self) -> None:  # noqa: B027 - a v1 graph is known in `begin` only
        """Take the model for the run, which opens."""

    # -- who takes part --------------------------------------------------------------

    def hook_of(self, guest: Guest) -> Any:
        """Return the hook that this process calls for a guest."""
        return guest.item

    def add_callback(self, max_lag: int | None) -> None:  # noqa: B027
        """Add a callback that wants its events at most `max_lag` steps late."""

    def monitored_hooks(self, hooks: Sequence[Hook]) -> list[Hook]:
        """Return the hooks as `MonitoredSession` gets them."""
        return [HookWithoutEnd(hook) for hook in hooks]

    # -- a step, in the order of its calls -------------------------------------------

    def begin(self, mode: str) -> None:  # noqa: B027 - most loops show it themselves
        """Act in `on_<mode>_begin` of callbacks."""

    def make_apart_from_hooks(self, args: Arguments) -> Any:
        """Make a step where `is_apart_from_hooks` is true; wait for no hook."""
        raise NotImplementedError

    @abc.abstractmethod
    def prepare(self, args: Arguments) -> None:
        """Take what the native loop passes to its step; nothing runs yet."""

    @abc.abstractmethod
    def open(self) -> int:
        """Make the graph on which hooks `begin`; return the global step."""

    @abc.abstractmethod
    def run(self, monitored: Any) -> Any:
        """Make the prepared step in one `run`; return what the native loop gets."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Make this step the last one of the native loop."""

    @abc.abstractmethod
    def stopped_by(self, error: BaseException) -> Any:
        """Return what the native loop gets from a step that a hook's error ended.

        Where nothing else ends the native loop, this raises `error`.
        """

    def flush(self) -> None:  # noqa: B027 - most loops hold nothing back
        """Deliver events that are held back; called before the first `end`."""

    def failing(self) -> Context:
        """Return a context in which the session is closed after a failure."""
        return contextlib.nullcontext()

    # -- the model -------------------------------------------------------------------

    def means_of(self, model: KerasModel) -> EpochMeans | None:
        """Return who keeps the means of the epoch, if a later run can go on from them.

        Args:
          model: the model that the native loop trains.
        """
        return MetricMeans(model)

    @abc.abstractmethod
    def suspend(self) -> None:
        """Leave the model to a loop inside this one."""

    @abc.abstractmethod
    def resume(self) -> None:
        """Undo `suspend`: the loop inside has ended."""

    @abc.abstractmethod
    def leave(self) -> None:
        """Give the model its own methods back and drop what the run held."""


class LoopHost(NamedTuple):
    """One native loop, for one run; it is not used again."""

    graph_part: GraphPart
    session_part: SessionPart
    step_maker: StepMaker

    def suspend(self) -> None:
        """Let a loop inside this one take the model."""
        self.graph_part.suspend()
        self.step_maker.suspend()

    def resume(self) -> None:
        """Undo `suspend`: the loop inside has ended."""
        self.graph_part.resume()
        self.step_maker.resume()

    def leave(self) -> None:
        """Note that the run is over."""
        self.step_maker.leave()
        self.graph_part.leave()
