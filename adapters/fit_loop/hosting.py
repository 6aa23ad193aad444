"""How a run with hooks takes its place in the loops of a Keras model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from hookbridge import patching
from hookbridge.adapters.fit_loop import inner_loops
from hookbridge.adapters.fit_loop.modes import MODES, Mode
from hookbridge.adapters.live_session.global_step import GlobalStep


class Hosted(Protocol):
    """What a `Hosting` needs from its run.

    Attributes:
      global_step: the count of steps, once there is one.
    """

    global_step: GlobalStep | None

    def make_step(self, mode: Mode, make: Callable[..., Any]) -> Any:
        """Makes the loop's step with Keras's own `make`; None to take no part."""

    def call(self, *args: Any) -> Any:
        """What Keras calls for every step."""

    def left(self) -> None:
        """The model has its own methods again: the run is over."""


_INNERMOST: inner_loops.Innermost[Hosting] = inner_loops.Innermost()


def pending(model: Any) -> Any:
    """The run that waits for the loop which is about to begin, or None."""
    found = _INNERMOST.of(model)
    if found is None:
        return None
    if found.mode is None:
        return found.run
    found.leave()  # its loop has ended, but nobody called `leave`
    return None


class Hosting:
    """Gives Keras the function that its loop calls, for as long as a run goes on.

    Args:
      model: the Keras model whose loop is the host.
      run: the run.

    Attributes:
      mode: the kind of loop; None before it has begun.
      step: what the run's `make_step` has returned.
      is_over: whether the model has its own methods again.
      is_aside: whether a loop inside this one has the model.
    """

    def __init__(self, model: Any, run: Hosted) -> None:
        self.run = run
        self.mode: Mode | None = None
        self.step: Any = None
        self.is_over = False
        self.is_aside = False
        self._model = model
        self._makers = {mode: getattr(model, mode.make) for mode in MODES}
        self._is_in_loop = inner_loops.is_running(model)
        self._methods = patching.InstanceMethods(
            model,
            {
                **{mode.make: self._maker(mode) for mode in MODES},
                **{name: self._starter(name) for name in inner_loops.STARTERS},
            },
        )
        self._methods.install()
        _INNERMOST.take(model, self)

    def _maker(self, mode: Mode) -> Callable[..., Any]:
        """A replacement for `model.make_<mode>_function`."""
        original = self._makers[mode]

        def make(force: bool = False) -> Any:
            if self.is_over:  # somebody has kept this function
                return original(force)
            if self.mode is None:
                if not self._begin(mode):
                    return original(force)
            elif mode is not self.mode:
                return original(force)  # validation inside this fit
            elif force or getattr(self._model, mode.function) is None:
                # A callback has changed the step, for example which layers train.
                setattr(self._model, mode.function, None)
                self._build_step(mode)
            return self.run.call

        return make

    def _begin(self, mode: Mode) -> bool:
        """Takes over the loop; returns whether the run wants it."""
        self._is_in_loop = inner_loops.is_running(self._model)
        try:
            self._build_step(mode)
        except BaseException:
            self.leave()
            raise
        if self.step is None:
            return False
        self.mode = mode
        return True

    def _build_step(self, mode: Mode) -> None:
        self.step = self.run.make_step(mode, self._makers[mode])
        if self.step is not None:
            setattr(self._model, mode.function, self.run.call)

    def _starter(self, name: str) -> Callable[..., Any]:
        """A replacement for a model method that starts a loop or a step."""
        model, original = self._model, getattr(self._model, name)

        def start(*args: Any, **kwargs: Any) -> Any:
            is_running = inner_loops.is_running(model)
            if self._is_in_loop and not is_running:
                # An exception from elsewhere ended the loop; nobody called `leave`.
                self.leave()
            if self.is_over or (self.mode is None and not is_running):
                return original(*args, **kwargs)
            with self._aside():
                return original(*args, **kwargs)

        return start

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Leaves the model to a loop inside this one, which may have hooks too."""
        model, mode, step = self._model, self.mode, self.run.global_step
        kept = getattr(self.step, "kept", None)
        own = getattr(self.step, "own", kept)
        if mode is not None:
            setattr(model, mode.function, own)
        if step is not None and kept is not None:
            step.remember()
        self._methods.remove()
        try:
            with _INNERMOST.aside(model, self):
                yield
        finally:
            if not self.is_over:
                self._methods.install()
                if step is not None and kept is not None:
                    step.recall()
                if mode is None:
                    pass
                elif own is not None and getattr(model, mode.function) is own:
                    setattr(model, mode.function, self.run.call)
                else:
                    self._build_step(mode)

    def leave(self) -> None:
        """Gives the model its own methods back, and tells the run."""
        if self.is_over:
            return
        self.is_over = True
        self._methods.remove()
        if self.mode is not None:
            # Keras drops this function when the step changes, as in `compile`.
            kept = getattr(self.step, "kept", None)
            setattr(self._model, self.mode.function, kept)
        _INNERMOST.give_back(self._model, self)
        self.run.left()
