"""The part of a run in a training loop of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookbridge import errors
from hookbridge.adapters.hooked_loop.modes import TRAIN

# What a step returns -> `{name: tensor}`.
Named = Callable[[Any], Mapping[str, Any] | None]


class EndOfLoop(Exception):
    """A guest has ended the loop, and its step is not made; `OwnLoop` takes it."""


class OwnStep:
    """A step of the user's own, as a model has its step and the function of it."""

    train_function: Any = None

    def __init__(self, step: Any, named: Named, making: Callable[[], Any]) -> None:
        self.step = step
        self.named = named
        self._making = making
        self.train_step = getattr(step, "python_function", step)

    def make(self, force: bool = False) -> Any:
        """A new function that calls the step, with the options of the user's own."""

        def call(*args: Any) -> Any:
            return self.train_step(*args)

        def call_plain(*args: Any) -> Any:
            with self._making():
                return self.train_step(*args)

        is_function = hasattr(self.step, "python_function")
        return self.step._clone(call) if is_function else call_plain


class OwnInstallation:
    """The installation of a run whose steps `OwnLoop` makes; as `Installation`."""

    mode = TRAIN

    def __init__(self, model: Any, loop: Any, make_step: Callable[..., Any]) -> None:
        self.step: Any = None
        self._loop = loop
        self._make_step = make_step
        self._own: OwnStep | None = None

    def call(self, step: Any, named: Named, args: tuple[Any, ...]) -> Any:
        """Makes a step with the events of hooks around it."""
        if self._own is None:
            self._own = OwnStep(step, named, self._loop.making_step)
            self.step = self._make_step(TRAIN, self._own.make, self._own)
        elif self._own.step is not step:
            raise errors.RefusedError(
                f"Hooks have one step in a loop: received `{_name(step)}` after "
                f"`{_name(self._own.step)}`. Put both into one function, or give the "
                "second one a loop of its own.",
                see="own loops",
            )
        self._own.named = named
        return self._loop.call(*args)

    def without_step(self, error: BaseException, *, is_first: bool) -> Any:
        """Ends the loop before its step."""
        raise EndOfLoop from error

    def suspend(self) -> None:
        """Nothing: the loop inside has functions of its own."""

    def resume(self) -> None:
        """Nothing, as `suspend`."""

    def leave(self) -> None:
        """Nothing: the model was left as it is."""


def _name(step: Any) -> str:
    return str(getattr(step, "__name__", None) or type(step).__name__)
