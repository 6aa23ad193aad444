"""How a run with hooks takes its place in the loops of a Keras model."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge.adapters.fit_loop import inner_loops
from hookbridge.adapters.fit_loop.modes import MODES, Mode
from hookbridge.adapters.fit_loop.step import StepFunction
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.names import StepNames

# Of each model the run that is being set up or going on, the innermost one.
_RUNS: weakref.WeakKeyDictionary[Any, HostedRun] = weakref.WeakKeyDictionary()


class HostedRun:
    """Gives Keras the function that its loop calls, for as long as the run goes on.

    Args:
      model: the Keras model whose loop is the host.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.hooks: list[Any] = []
        self._originals = {mode: getattr(model, mode.make) for mode in MODES}
        self._mode: Mode | None = None
        # A `StepFunction`, or what stands for it under a strategy.
        self._step: Any = None
        self._global_step: GlobalStep | None = None
        self._is_over = False
        # Whether a loop inside this one has the model.
        self.is_aside = False
        self._is_in_loop = inner_loops.is_running(model)
        self._methods = inner_loops.InstanceMethods(
            model,
            {
                **{mode.make: self._maker(mode) for mode in MODES},
                **{name: self._starter(name) for name in inner_loops.STARTERS},
            },
        )
        self._methods.install()

    @classmethod
    def join(cls, model: Any, *hooks: Any) -> Any:
        """The run that is being set up for `model`, with hooks added to it."""
        run = _RUNS.get(model)
        if run is None or run._mode is not None:
            if run is not None:
                run.leave()
            run = _RUNS[model] = cls(model)
        run.hooks += [hook for hook in hooks if hook is not None]
        return run

    def _maker(self, mode: Mode) -> Callable[..., Any]:
        original = self._originals[mode]

        def make(force: bool = False) -> Any:
            model = self._model
            if self._is_over:  # somebody has kept this function
                return original(force)
            if self._mode is None:
                self._mode = mode
                self._is_in_loop = inner_loops.is_running(model)
                self._names = StepNames(model)
                self._build_step()
            elif mode is not self._mode:
                return original(force)  # validation inside this fit
            elif force or getattr(model, mode.function) is None:
                # A callback has changed what a step is, say which layers train.
                self._build_step()
            return self._call

        return make

    def _build_step(self) -> None:
        assert self._mode is not None
        self._step = self._make_step(self._mode, self._originals[self._mode])
        setattr(self._model, self._mode.function, self._call)

    def _starter(self, name: str) -> Callable[..., Any]:
        """In the place of a method that starts a loop, or a step, on the model."""
        model, original = self._model, getattr(self._model, name)

        def start(*args: Any, **kwargs: Any) -> Any:
            is_running = inner_loops.is_running(model)
            if self._is_in_loop and not is_running:
                # An exception of somebody else ended this run without telling us.
                self.leave()
            if self._is_over or (self._mode is None and not is_running):
                return original(*args, **kwargs)
            with self._aside():
                return original(*args, **kwargs)

        return start

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Leaves the model to a loop inside this one, which may have hooks too."""
        model, mode, step = self._model, self._mode, self._global_step
        native = getattr(self._step, "native", None)
        if mode is not None:
            setattr(model, mode.function, native)
        if step is not None and native is not None:
            step.remember()
        self._methods.remove()
        _RUNS.pop(model, None)
        self.is_aside = True
        try:
            yield
        finally:
            inner = _RUNS.get(model)
            if inner is not None:
                inner.leave()
            if not self._is_over:
                _RUNS[model] = self
                self.is_aside = False
                self._methods.install()
                if step is not None and native is not None:
                    step.recall()
                if mode is None:
                    pass
                elif getattr(model, mode.function) is native:
                    setattr(model, mode.function, self._call)
                else:
                    self._build_step()

    def _make_step(self, mode: Mode, original: Any) -> Any:
        return StepFunction(self._model, mode, original, self._names)

    def _call(self, *args: Any) -> Any:
        """What Keras calls for every step."""
        raise NotImplementedError

    def is_mode(self, name: str) -> bool:
        """Whether this run is of that loop."""
        return self._mode is not None and self._mode.name == name

    def leave(self) -> None:
        """Gives the model its own methods back."""
        if self._is_over:
            return
        self._is_over = True
        self._methods.remove()
        if self._mode is not None:
            setattr(self._model, self._mode.function, None)
        if _RUNS.get(self._model) is self:
            del _RUNS[self._model]
