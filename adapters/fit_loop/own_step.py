"""A step of the user's own, and how a run gets into a loop of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.step_source import (
    StepInstallation,
    StepTensors,
    tensors_of_logs,
)
from hookbridge.adapters.hooked_loop.modes import TRAIN
from hookbridge.adapters.live_session.step_names import StepNames
from hookbridge.ground import patching
from hookbridge.ground.protocols import AnyFunction, Arguments, Context, KerasModel

# What a step returns -> `{name: tensor}`.
Named = Callable[[Any], Mapping[str, Any] | None]


class EndOfLoop(Exception):
    """A guest has ended the loop, and its step is not made; `OwnLoop` takes it."""


class OwnStep:
    """A step of the user's own, as a `StepSource`."""

    mode = TRAIN

    def __init__(
        self,
        model: KerasModel,
        function: AnyFunction,
        named: Named,
        making: Callable[[], Context],
    ) -> None:
        self.model = model
        self.function = function
        self.named = named
        self.function_on_model: Any = None
        self.method: AnyFunction = getattr(function, "python_function", function)
        self._making = making
        self._called = self.method  # or a tap of it

    def replacing_method(self, tap: AnyFunction) -> Context:
        return patching.temporarily(self, _called=tap)

    def function_with(self, tap: AnyFunction, *, for_model: bool) -> Any:
        """Return a function with the options of the user's own `tf.function`."""

        def call(*args: object) -> Any:
            return self._called(*args)

        def call_plain(*args: object) -> Any:
            with self._making():
                return self._called(*args)

        is_function = hasattr(self.function, "python_function")
        return self.function._clone(call) if is_function else call_plain  # type: ignore[attr-defined]

    def tensors_of(self, outputs: object, noted: Mapping[str, Any]) -> StepTensors:
        visible = {k: t for k, t in noted.items() if _is_of_this_function(t)}
        return tensors_of_logs(self.named(outputs), visible)

    def returns(self, key: str, names: StepNames) -> bool:
        return False


class OwnInstallation(StepInstallation):
    """The run in a loop whose steps `OwnLoop` makes."""

    mode = TRAIN
    _source: OwnStep | None = None  # the step, once it is known

    def call(self, step: AnyFunction, named: Named, args: Arguments) -> Any:
        """Make a step with the events of hooks around it."""
        run, source = self._run, self._source
        if source is None:
            source = OwnStep(run.model, step, named, run.loops.making_step)
            self._source = source
            self.step_function = self._make_step_function(source)
        elif source.function is not step:
            raise errors.RefusedError(
                f"A loop has one step for its hooks: received `{_name(step)}` after "
                f"`{_name(source.function)}`. Put both into one function, or use a "
                "separate loop for the second one.",
                see="own loops",
            )
        source.named = named
        return run.call(*args)

    def without_step(self, error: BaseException, *, is_first: bool) -> Any:
        """End the loop before its step."""
        raise EndOfLoop from error


def _is_of_this_function(tensor: tf.Tensor) -> bool:
    """Return whether the function that runs or is traced now can return a tensor."""
    tensor = tensor.values if isinstance(tensor, tf.IndexedSlices) else tensor
    if tf.executing_eagerly():
        return hasattr(tensor, "numpy")
    return getattr(tensor, "graph", None) is tf.compat.v1.get_default_graph()


def _name(step: object) -> str:
    return str(getattr(step, "__name__", None) or type(step).__name__)
