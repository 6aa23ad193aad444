"""Where the step of a run comes from, and what its results are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from hookbridge.adapters.fit_loop.eager_step import OUTPUT, output_names
from hookbridge.adapters.hooked_loop.modes import PREDICT, Mode
from hookbridge.adapters.live_session.step_names import OUTPUTS, StepNames
from hookbridge.ground import patching
from hookbridge.ground.protocols import AnyFunction, Context, KerasModel


class StepTensors(NamedTuple):
    """The tensors of a step that have a short key."""

    tensors: dict[str, Any]
    loop_keys: dict[str, str]  # of what a session loop would fetch, by its names


class StepSource(Protocol):
    """The step that a run taps: Keras's, or one of the user's own."""

    model: KerasModel
    mode: Mode
    method: AnyFunction  # what computes the step
    filed: Any  # the function of the step, where Keras looks for it

    def tapped(self, tap: AnyFunction) -> Context:
        """A context in which `tap` is called where `method` would be."""

    def function_with(self, tap: AnyFunction, *, is_filed: bool) -> Any:
        """A new function whose step is `tap`; files it too if it says so."""

    def tensors_of(self, outputs: object, noted: Mapping[str, Any]) -> StepTensors:
        """What the step has returned, and what was noted while it was computed."""

    def returns(self, key: str, names: StepNames) -> bool:
        """Whether the function returns the step tensor `key` untapped."""


class ModelStep:
    """The step of a Keras model in one of its loops."""

    def __init__(self, model: KerasModel, mode: Mode, make: AnyFunction) -> None:
        self.model = model
        self.mode = mode
        self.method: AnyFunction = getattr(model, mode.step)
        self._make = make  # Keras's own `make_<mode>_function`

    @property
    def filed(self) -> Any:
        return getattr(self.model, self.mode.function)

    @filed.setter
    def filed(self, function: AnyFunction | None) -> None:
        setattr(self.model, self.mode.function, function)

    def tapped(self, tap: AnyFunction) -> Context:
        return patching.patched(self.model, **{self.mode.step: tap})

    def function_with(self, tap: AnyFunction, *, is_filed: bool) -> Any:
        model, mode = self.model, self.mode
        before = {
            name: getattr(model, name)
            for name in (mode.function, f"{mode.name}_tf_function")
            if hasattr(model, name)
        }
        with self.tapped(tap):
            result = self._make(force=True)
        function = self.filed if result is None else result
        if not is_filed:
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


def tensors_of_logs(logs: object, noted: Mapping[str, Any]) -> StepTensors:
    """The tensors of a step that returns logs, `{name: tensor}`."""
    tensors: dict[str, Any] = {}
    if isinstance(logs, Mapping):
        tensors = {k: v for k, v in logs.items() if tf.is_tensor(v) and k}
    loop_keys = {key: key for key in tensors}
    if "loss" in noted:
        loop_keys = {"loss": "loss", **loop_keys}
    return StepTensors({**tensors, **noted}, loop_keys)


def named_outputs(outputs: object, names: Sequence[str]) -> dict[str, Any]:
    """What a step returns, as `{name: tensor}`."""
    if isinstance(outputs, Mapping):
        return {str(k): v for k, v in outputs.items() if tf.is_tensor(v) and k}
    leaves = [leaf for leaf in tf.nest.flatten(outputs) if tf.is_tensor(leaf)]
    if len(names) != len(leaves):
        names = [f"{OUTPUT}{i}" for i in range(1, len(leaves) + 1)]
    return dict(zip(names, leaves, strict=True))
