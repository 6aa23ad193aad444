"""What differs between the native loops in which hooks run."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hookbridge.adapters.guests.record import Guest
from hookbridge.adapters.hooked_loop.monitored import HookWithoutEnd


class ModelValues:
    """The values of a model's variables at a moment; equal to others if all are."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelValues) and all(
            np.array_equal(np.asarray(mine), np.asarray(theirs))
            for mine, theirs in zip(self._values, other._values, strict=True)
        )


class Host(abc.ABC):
    """One native loop: its step, what hooks see of it, and how a stop reaches it.

    A `HookedLoop` calls these methods; the native loop calls `loop.call` in the place
    of each step. A host is made for one run and not used again. It is also the session
    creator of the run's `MonitoredSession`.
    """

    native_step: Any = None  # its `run` is the native step, for profiles

    def __init__(self, model: Any) -> None:
        self.model = model
        self.loop: Any = None  # from `attach` on
        # "train", "test" or "predict"; None before the native loop begins.
        self.mode: str | None = None
        # Whether the step met the end of the data: its error is the native loop's.
        self.data_ended = False
        self.session: Any = None  # what hooks get
        self._is_first = True  # whether no session was created yet

    def attach(self, loop: Any) -> None:
        """Takes the loop; the model may be prepared for it now."""
        self.loop = loop

    def hook_of(self, guest: Guest) -> Any:
        """The hook that this process calls for a guest."""
        return guest.item

    def add_member(self, max_lag: int | None) -> None:  # noqa: B027
        """A callback takes part; it wants its events at most `max_lag` steps late."""

    def begin(self, mode: str) -> None:  # noqa: B027 - most hosts see the mode
        """Called in `on_<mode>_begin` of callbacks."""

    def call(self, args: tuple[Any, ...]) -> Any:
        """Makes one native step, with the events of hooks around it."""
        return self.loop.step(args)

    @abc.abstractmethod
    def prepare(self, args: tuple[Any, ...]) -> None:
        """Takes what the native loop passes to its step; nothing runs yet."""

    @abc.abstractmethod
    def open(self) -> int:
        """Makes the graph on which hooks `begin`; returns the global step."""

    def members(self, hooks: Sequence[Any]) -> list[Any]:
        """The hooks as `MonitoredSession` gets them."""
        return [HookWithoutEnd(hook) for hook in hooks]

    def create_session(self) -> Any:
        """What `MonitoredSession` calls, again in each recovery."""
        is_first, self._is_first = self._is_first, False
        return self.prepare_session(is_first)

    @abc.abstractmethod
    def prepare_session(self, is_first: bool) -> Any:
        """Makes and prepares the session that hooks get."""

    @abc.abstractmethod
    def hooks_run(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which methods of hooks are called."""

    @abc.abstractmethod
    def run(self, monitored: Any) -> Any:
        """Makes the prepared step in one `run`; returns what the native loop gets."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Makes this step the last one of the native loop."""

    @abc.abstractmethod
    def stopped_by(self, error: BaseException) -> Any:
        """What the native loop gets from a step that a hook has ended by an error.

        Where nothing else ends the native loop, this raises `error`.
        """

    @property
    @abc.abstractmethod
    def step(self) -> int:
        """The global step, from `open` on."""

    @abc.abstractmethod
    def values(self) -> ModelValues:
        """What a checkpoint of the model holds of it now."""

    def flush(self) -> None:  # noqa: B027 - most hosts hold nothing back
        """Delivers events that are held back; called before the first `end`."""

    def end(self, hook: Any) -> None:
        """Calls the `end` of a hook, after a clean finish."""
        with self.hooks_run():
            hook.end(self.session)

    def remember(self) -> None:  # noqa: B027
        """Keeps what the model's next run needs, after a clean finish."""

    def failing(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which the session is closed after a failure."""
        return contextlib.nullcontext()

    @abc.abstractmethod
    def suspend(self) -> None:
        """A loop inside this one takes the model."""

    @abc.abstractmethod
    def resume(self) -> None:
        """The loop inside has ended; undoes `suspend`."""

    @abc.abstractmethod
    def leave(self) -> None:
        """Gives the model its own methods back and drops what the run held."""
