"""What a loop's step has to offer a run, and what its results are called."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from hookbridge.adapters.fit_loop.eager_step import OUTPUT
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.modes import Mode
from hookbridge.adapters.live_session.step_names import StepNames
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
    # What the model has where Keras looks for the step's function: during a run, `call`
    # of the run.
    function_on_model: Any

    def replacing_method(self, tap: AnyFunction) -> Context:
        """Return a context in which `tap` is called where `method` would be."""

    def function_with(self, tap: AnyFunction, *, for_model: bool) -> Any:
        """Return a new function whose step is `tap`.

        Args:
          tap: what is called in the place of `method`.
          for_model: whether the model gets the function too.
        """

    def tensors_of(self, outputs: object, noted: Mapping[str, Any]) -> StepTensors:
        """Return what the step has returned, and what was noted meanwhile."""

    def returns(self, key: str, names: StepNames) -> bool:
        """Return whether the function returns the step tensor `key` untapped."""


class StepInstallation(abc.ABC):
    """What makes a native loop call a run, and gives it back what is its own."""

    mode: Mode | None = None  # that of the native loop; None before it begins
    # What `make_step_function` has made, from the first step on.
    step_function: Any = None

    def install(self, run: HookedRun, make_step_function: MakeStepFunction) -> None:
        """Take the model for a run; `make_step_function` makes its step."""
        self._run = run
        self._make_step_function = make_step_function

    @abc.abstractmethod
    def without_step(self, error: BaseException, *, is_first: bool) -> Any:
        """Return what the loop gets where a hook's error has ended it early."""

    def suspend(self) -> None:  # noqa: B027 - not all set anything on the model
        """Let a loop inside the run take the model."""

    def resume(self) -> None:  # noqa: B027
        """Take the model again: the loop inside has ended."""

    def leave(self) -> None:  # noqa: B027
        """Give the model its own function back."""


class StepFunctionProtocol(Protocol):
    """What a run asks of its step function, `StepFunction` or `ScheduledStep`."""

    names: StepNames

    @property
    def optimizer(self) -> Any:
        """The optimizer that the step trains with."""

    @property
    def models_own_function(self) -> AnyFunction | None:
        """What the model has after the run, where Keras looks; None for nothing."""

    @property
    def for_inner_loop(self) -> AnyFunction:
        """What a loop inside the run calls."""


# Makes the function of a loop's step; returns None to take no part.
MakeStepFunction = Callable[[StepSource], StepFunctionProtocol | None]


def tensors_of_logs(logs: object, noted: Mapping[str, Any]) -> StepTensors:
    """Return the tensors of a step that returns logs, `{name: tensor}`."""
    tensors: dict[str, Any] = {}
    if isinstance(logs, Mapping):
        tensors = {k: v for k, v in logs.items() if tf.is_tensor(v) and k}
    loop_keys = {key: key for key in tensors}
    if "loss" in noted:
        loop_keys = {"loss": "loss", **loop_keys}
    return StepTensors({**tensors, **noted}, loop_keys)


def named_outputs(outputs: object, names: Sequence[str]) -> dict[str, Any]:
    """Return what a step returns, as `{name: tensor}`."""
    if isinstance(outputs, Mapping):
        return {str(k): v for k, v in outputs.items() if tf.is_tensor(v) and k}
    leaves = [leaf for leaf in tf.nest.flatten(outputs) if tf.is_tensor(leaf)]
    if len(names) != len(leaves):
        names = [f"{OUTPUT}{i}" for i in range(1, len(leaves) + 1)]
    return dict(zip(names, leaves, strict=True))
