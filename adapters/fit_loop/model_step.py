"""The step of a Keras model, and how a run gets into the loops of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookbridge.adapters.fit_loop.step_source import (
    MakeStepFunction,
    StepInstallation,
    StepTensors,
    named_outputs,
    tensors_of_logs,
)
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.modes import MODES, PREDICT, Mode
from hookbridge.adapters.keras_model.structure import output_names
from hookbridge.adapters.live_session.step_names import OUTPUTS, StepNames
from hookbridge.ground import compat, patching
from hookbridge.ground.protocols import AnyFunction, Context, KerasModel


class ModelStep:
    """The step of a Keras model in one of its loops, as a `StepSource`."""

    def __init__(self, model: KerasModel, mode: Mode, make: AnyFunction) -> None:
        self.model = model
        self.mode = mode
        self.method: AnyFunction = getattr(model, mode.method)
        self._make = make  # Keras's own `make_<mode>_function`

    @property
    def function_on_model(self) -> Any:
        return getattr(self.model, self.mode.function)

    @function_on_model.setter
    def function_on_model(self, function: AnyFunction | None) -> None:
        setattr(self.model, self.mode.function, function)

    def replacing_method(self, tap: AnyFunction) -> Context:
        return patching.patched(self.model, **{self.mode.method: tap})

    def function_with(self, tap: AnyFunction, *, for_model: bool) -> Any:
        model, mode = self.model, self.mode
        before = {
            name: getattr(model, name)
            for name in (mode.function, f"{mode.name}_tf_function")
            if hasattr(model, name)
        }
        with self.replacing_method(tap):
            result = self._make(force=True)
        function = self.function_on_model if result is None else result
        if not for_model:
            for name, value in before.items():
                setattr(model, name, value)
        return function

    def tensors_of(self, outputs: object, noted: Mapping[str, Any]) -> StepTensors:
        if self.mode is not PREDICT:
            return tensors_of_logs(outputs, noted)
        named = named_outputs(outputs, output_names(self.model))
        loop_keys = {name: f"{OUTPUTS}{name}" for name in named}
        tensors = {loop_keys[name]: tensor for name, tensor in named.items()}
        return StepTensors({**tensors, **noted}, loop_keys)

    def returns(self, key: str, names: StepNames) -> bool:
        if key.startswith(OUTPUTS):
            return True
        is_one = self.model.distribute_strategy.num_replicas_in_sync == 1
        return is_one and key != "loss" and key in names.loop_keys


def end_quietly() -> None:
    """Keep the running loop of Keras 2 from warning about data at its early end.

    Such a loop ends before a step only by the end of its data, and warns if it knows of
    more.
    """
    loop = compat.running_locals("keras_2_data")
    if loop is not None:
        compat.forget_number_of_steps(loop["data_handler"])


class ModelInstallation(StepInstallation):
    """Gives Keras the function that its loop calls, for as long as a run goes on."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self._inside: Any = None  # what the loop inside a suspended run calls
        self._keras_methods = {mode: getattr(model, mode.make) for mode in MODES}
        self._methods = patching.Patches(
            model, {mode.make: self._replacement(mode) for mode in MODES}
        )

    def install(self, run: HookedRun, make_step_function: MakeStepFunction) -> None:
        super().install(run, make_step_function)
        self._methods.install()

    def _replacement(self, mode: Mode) -> AnyFunction:
        """Return a replacement for `model.make_<mode>_function`."""
        original = self._keras_methods[mode]

        def make(force: bool = False) -> Any:
            # Called through a saved reference, or for a loop beside that of the run.
            if self._run.is_over or self._run.loops.is_elsewhere():
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
        """Take over the loop; return whether the run wants it."""
        try:
            self._build_step(mode)
        except BaseException:
            self._run.leave()
            raise
        if self.step_function is None:
            return False
        self.mode = mode
        self._run.note_begin(mode.name)
        return True

    def _build_step(self, mode: Mode) -> None:
        source = ModelStep(self._model, mode, self._keras_methods[mode])
        self.step_function = self._make_step_function(source)
        if self.step_function is not None:
            setattr(self._model, mode.function, self._run.call)

    def without_step(self, error: BaseException, *, is_first: bool) -> Any:
        """Return what Keras gets where a hook's error has ended the loop."""
        if is_first and self.mode is not PREDICT:
            # Without logs, Keras 2 blames the input pipeline.
            return self._model.get_metrics_result()
        end_quietly()
        raise error

    def suspend(self) -> None:
        """Leave the model to a loop inside this one."""
        if self.mode is not None:
            self._inside = self.step_function.for_inner_loop
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
        """Give the model its own methods back."""
        self._methods.remove()
        if self.mode is not None:
            # Keras drops this function when the step changes, as in `compile`.
            setattr(
                self._model, self.mode.function, self.step_function.models_own_function
            )
