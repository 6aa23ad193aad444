"""The graph a hook sees under `fit`: a real `tf.Graph` over a Keras model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.adapters.live_session.names import StepNames, StepTensor
from hookbridge.adapters.live_session.variables import ModelVariable

v1 = tf.compat.v1

# The scope of the placeholders in `loop_fetches`, so that hooks can give their own ops
# the names of metrics.
_LOOP = "loop/"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-/]")


class LiveGraph(tf.Graph):  # type: ignore[misc]
    """A graph whose variables and step tensors live in a Keras model.

    It has a graph variable for each variable of the model, the global step, the
    value of a constant learning rate as `learning_rate:0`, and the operation
    `train_step`, whose execution is one call of the model's step. A step tensor gets
    its placeholder when somebody first looks it up by name.

    Args:
      names: the catalogue of the traced step.
      variables: the model's variables.
      global_step: the variable that counts completed steps.
      learning_rate: the optimizer's learning-rate variable, or None where it has
        none (a schedule, or no optimizer).

    Attributes:
      handles: `{placeholder of a handle: ModelVariable}`.
      values: `{tensor of a handle: tensor of the variable's value}`, since the name
        `<variable>:0` means the value.
      self_assigns: `{initializer of a variable: the tensor that it assigns}`.
      step_tensors: `{placeholder: StepTensor}`.
      tapped: `{placeholder: key}` of the step tensors that each step has to return.
      loop_fetches: `{name: tensor}`, what a session loop would fetch in each step.
      step_op: the operation that stands for the step.
      global_step_name: the placeholder of the global step's handle.
      global_step_tensors: names of the tensors whose value is the global step.
      learning_rate_name: name of the tensor whose feed sets the learning rate,
        or None.
    """

    def __init__(
        self,
        names: StepNames,
        variables: Sequence[ModelVariable],
        global_step: ModelVariable,
        learning_rate: Any = None,
    ) -> None:
        super().__init__()
        self.names = names
        self.handles: dict[str, ModelVariable] = {}
        self.values: dict[str, Any] = {}
        self.self_assigns: dict[str, str] = {}
        self.step_tensors: dict[str, StepTensor] = {}
        self.tapped: dict[str, str] = {}
        self.learning_rate_name: str | None = None
        with self.as_default():
            step = self._add(global_step, (v1.GraphKeys.GLOBAL_STEP,))
            read = compat.private("global_step_read")()
            self.global_step_tensors = frozenset(
                t.name for t in (read, step._graph_element)
            )
            self.global_step_name = step.handle.op.name
            rate = None
            for variable in variables:
                made = self._add(variable)
                if variable.eager is learning_rate:
                    rate = made
            if rate is not None:
                self.learning_rate_name = v1.placeholder_with_default(
                    rate.read_value(), [], name="learning_rate"
                ).name
            self.step_op = tf.no_op(name="train_step")
        self.loop_fetches = {
            name: self._add_placeholder(item, _LOOP + _NOT_IN_NAMES.sub("_", name))
            for name, item in names.loop_tensors()
        }

    def _add(self, variable: ModelVariable, collections: tuple[str, ...] = ()) -> Any:
        made = live_variables.graph_variable(variable, collections)
        self.handles[made.handle.op.name] = variable
        self.values[made.handle.name] = made._graph_element
        self.self_assigns[made.initializer.name] = made.initial_value.name
        return made

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """As in `tf.Graph`; a step tensor gets a placeholder and is tapped.

        Raises:
          errors.UnknownTensorError: (a `KeyError`, as TF raises) neither the
            graph nor the step has that name; the nearest names are listed.
        """
        try:
            found = super().as_graph_element(obj, allow_tensor, allow_operation)
            if type(obj) is not str:
                return found
            self.tap(found.op.name if ":" in obj else found.name)
            return self.values.get(found.name, found)
        except KeyError as e:
            if not isinstance(obj, str):
                raise
            added = self._placeholder_of(obj)
            if added is None:
                complaint = f"{e.args[0]} {self._hint(obj)}"
                raise errors.UnknownTensorError(complaint) from e
        self.tap(added.op.name)
        return super().as_graph_element(
            added.name if ":" in obj else added.op.name, allow_tensor, allow_operation
        )

    def tap(self, *placeholders: str) -> None:
        """Lets each step return these, if they are step tensors, from now on."""
        for name in placeholders:
            if name in self.step_tensors:
                self.tapped[name] = self.step_tensors[name].key

    def _placeholder_of(self, name: str) -> Any:
        """The placeholder of the step tensor that `name` means, or None."""
        item = self.names.find(name)
        if item is None:
            return None
        for existing, known in self.step_tensors.items():
            if known == item and not existing.startswith(_LOOP):
                return super().as_graph_element(f"{existing}:0")
        return self._add_placeholder(item, name.split(":")[0])

    def _add_placeholder(self, item: StepTensor, name: str) -> Any:
        finalized = self.finalized
        if finalized:
            # A new placeholder changes nothing that a session has run already.
            self._unsafe_unfinalize()
        try:
            with self.as_default(), self.name_scope(None), tf.device(None):
                tensor = v1.placeholder(item.dtype, item.shape, name=name)
        finally:
            if finalized:
                self.finalize()
        self.step_tensors[tensor.op.name] = item
        return tensor

    def _hint(self, name: str) -> str:
        near = self.names.nearest(
            name, (f"{op.name}:0" for op in self.get_operations())
        )
        names = f"Nearest names: {', '.join(f'`{n}`' for n in near)}. " if near else ""
        return (
            "Neither the training step of this model nor a hook has made it. "
            f"{names}A tensor of a layer is `<layer>/<Op>:0`; the loss is `loss:0`; "
            "a metric is `<metric>:0`."
        )
