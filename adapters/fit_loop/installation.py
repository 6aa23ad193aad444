"""Puts a run in the place of the functions that the loops of a Keras model call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hookbridge.adapters.fit_loop.step_source import ModelStep, StepSource
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.modes import MODES, PREDICT, Mode
from hookbridge.ground import compat, patching
from hookbridge.ground.protocols import AnyFunction, KerasModel


class StepInstallation(Protocol):
    """What makes a native loop call a run, and gives it back what is its own."""

    step: Any  # what `make_function` has made, from the loop's first step on

    @property
    def mode(self) -> Mode | None:
        """The mode of the native loop; None before it begins."""

    def install(self, run: HookedRun, make_function: MakeFunction) -> None:
        """Takes the model for a run; `make_function` makes its step."""

    def without_step(self, error: BaseException, *, is_first: bool) -> Any:
        """What the loop gets where a hook's error has ended it before its step."""

    def suspend(self) -> None: ...

    def resume(self) -> None: ...

    def leave(self) -> None: ...


class RunFunction(Protocol):
    """The function of the step that a run makes."""

    @property
    def filed(self) -> AnyFunction | None:
        """What the model has after the run, as Keras files it; None for nothing."""

    @property
    def inside(self) -> AnyFunction:
        """What a loop inside the run calls."""


# Makes the function of a loop's step; returns None to take no part.
MakeFunction = Callable[[StepSource], RunFunction | None]


def end_quietly() -> None:
    """Tells a loop of Keras 2 that runs that no data is missing at its early end.

    Such a loop ends before a step only by the end of its data, and warns if it knows of
    more.
    """
    loop = compat.running_locals("keras_2_data")
    if loop is not None:
        compat.forget_number_of_steps(loop["data_handler"])


class Installation:
    """Gives Keras the function that its loop calls, for as long as a run goes on."""

    def __init__(self, model: KerasModel) -> None:
        self.mode: Mode | None = None
        self.step: Any = None
        self._model = model
        self._run: HookedRun
        self._make_function: MakeFunction
        self._inside: Any = None  # what the loop inside a suspended run calls
        self._makers = {mode: getattr(model, mode.make) for mode in MODES}
        self._methods = patching.InstanceMethods(
            model, {mode.make: self._maker(mode) for mode in MODES}
        )

    def install(self, run: HookedRun, make_function: MakeFunction) -> None:
        self._run = run
        self._make_function = make_function
        self._methods.install()

    def _maker(self, mode: Mode) -> AnyFunction:
        """A replacement for `model.make_<mode>_function`."""
        original = self._makers[mode]

        def make(force: bool = False) -> Any:
            if self._run.is_over:  # called through a saved reference
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
            return self._run.call

        return make

    def _begin(self, mode: Mode) -> bool:
        """Takes over the loop; returns whether the run wants it."""
        try:
            self._build_step(mode)
        except BaseException:
            self._run.leave()
            raise
        if self.step is None:
            return False
        self.mode = mode
        self._run.note_begin(mode.name)
        return True

    def _build_step(self, mode: Mode) -> None:
        source = ModelStep(self._model, mode, self._makers[mode])
        self.step = self._make_function(source)
        if self.step is not None:
            setattr(self._model, mode.function, self._run.call)

    def without_step(self, error: BaseException, *, is_first: bool) -> Any:
        """What Keras gets where a hook's error has ended the loop before its step."""
        if is_first and self.mode is not PREDICT:
            # Without logs, Keras 2 blames the input pipeline.
            return self._model.get_metrics_result()
        end_quietly()
        raise error

    def suspend(self) -> None:
        """Leaves the model to a loop inside this one."""
        if self.mode is not None:
            self._inside = self.step.inside
            setattr(self._model, self.mode.function, self._inside)
        self._methods.remove()

    def resume(self) -> None:
        self._methods.install()
        mode = self.mode
        if mode is None:
            return
        if getattr(self._model, mode.function) is self._inside:
            setattr(self._model, mode.function, self._run.call)
        else:  # the loop inside has changed the step
            self._build_step(mode)

    def leave(self) -> None:
        """Gives the model its own methods back."""
        self._methods.remove()
        if self.mode is not None:
            # Keras drops this function when the step changes, as in `compile`.
            setattr(self._model, self.mode.function, self.step.filed)
