"""The graph a hook sees under `fit`: a real `tf.Graph` over a Keras model."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.keras_model.variables import ModelVariable
from hookbridge.adapters.live_session.graph_variables import (
    COLLECTIONS,
    DefaultSaver,
    GraphVariables,
)
from hookbridge.adapters.live_session.step_names import StepNames, StepTensor
from hookbridge.ground import compat

v1 = tf.compat.v1

# The scope of the placeholders in `loop_fetches`, so that hooks can give their own ops
# the names of metrics.
_LOOP = "loop/"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-/]")


class LiveGraph(tf.Graph):  # type: ignore[misc]
    """A graph whose variables and step tensors live in a Keras model.

    It has the global step, the value of a constant learning rate as
    `learning_rate:0`, and the operation `train_step`, whose execution is one call of
    the model's step. A variable of the model and a step tensor get their ops when
    somebody first looks for them: by name, or in a collection.
    """

    def __init__(
        self,
        names: StepNames,
        variables: Sequence[ModelVariable],
        global_step: ModelVariable,
        learning_rate: object = None,
        other_rates: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        self.names = names
        self.variables: GraphVariables = GraphVariables(self, [global_step, *variables])
        names.other_rate_names = [
            f"{name}:0" for name in self.variables.names_of(other_rates)
        ]
        self.step_tensors: dict[str, StepTensor] = {}  # by their placeholders
        # Placeholder -> key of each step tensor that every step returns.
        self.tapped: dict[str, str] = {}
        self.learning_rate_name: str | None = None  # of the tensor that hooks feed
        self.saver: DefaultSaver | None = None
        self._hides_variables = True
        with self.as_default():
            step = self.variables.make(global_step)
            self.add_to_collection(v1.GraphKeys.GLOBAL_STEP, step)
            # TensorFlow's own read has a conditional for an uninitialised variable; to
            # build it takes longer than all the rest of this graph.
            with self.name_scope("global_step/"):
                copy = step.read_value() + 0
            self.add_to_collection(compat.private("global_step_read_key"), copy)
            read = compat.private("global_step_read")()
            self.global_step_tensors: frozenset[str] = frozenset(
                t.name for t in (read, step._graph_element)
            )
            self.global_step_name: str = step.handle.op.name
            self._rate: Any = None  # the graph variable that `learning_rate:0` reads
            if learning_rate is not None:
                self._make_rate(learning_rate)
            self.step_op: Any = tf.no_op(name="train_step")
        # What a session loop would fetch in each step.
        self.loop_fetches: dict[str, Any] = {
            name: self._add_placeholder(item, _LOOP + _NOT_IN_NAMES.sub("_", name))
            for name, item in names.loop_tensors()
        }
        self._hides_variables = False

    def _make_rate(self, eager: object) -> None:
        """Make `learning_rate:0`, which reads the rate that is in force."""
        # The graph has a variable for it: a callback may replace the optimizer's by
        # one with another name.
        self._rate = self.variables.make_hidden("rate_in_force", _hidden(eager))
        self.learning_rate_name = v1.placeholder_with_default(
            self._rate.read_value(), [], name="learning_rate"
        ).name

    def renew(
        self,
        names: StepNames,
        variables: Sequence[ModelVariable],
        learning_rate: object,
        other_rates: Sequence[Any],
    ) -> None:
        """Show hooks what the model has after a callback has changed its step.

        Args:
          names: the catalogue of the new step.
          variables: the variables that the model has now.
          learning_rate: the variable that `learning_rate:0` reads; None if nobody
            reads it.
          other_rates: the variables of the rates of other optimizers.
        """
        self.names = names
        step = self.variables.handles[self.global_step_name]
        self.variables.renew([step, *variables])
        names.other_rate_names = [
            f"{name}:0" for name in self.variables.names_of(other_rates)
        ]
        if self.saver is not None:
            self.saver.renew(self)
        if learning_rate is not None and self._rate is not None:
            self.variables.handles[self._rate.handle.op.name] = _hidden(learning_rate)
        elif learning_rate is not None and names.find("learning_rate") is None:
            with self.growing():
                self._make_rate(learning_rate)

    @contextlib.contextmanager
    def growing(self) -> Iterator[None]:
        """Return a context for adding ops.

        The caller's own contexts have no effect in it.
        """
        # It works on a final graph too: a new op changes nothing that a session has
        # run.
        finalized = self.finalized
        if finalized:
            self._unsafe_unfinalize()
        try:
            with (
                self.as_default(),
                self.name_scope(None),
                self.control_dependencies(None),
                tf.device(None),
            ):
                yield
        finally:
            if finalized:
                self.finalize()

    @contextlib.contextmanager
    def finalizing(self, scaffold: tf.compat.v1.train.Scaffold) -> Iterator[None]:
        """Return a context in which a scaffold adds the ops that prepare a session."""
        # Keras has initialised the variables of the model. So the ops that the scaffold
        # makes by default leave them out; only a default saver includes them.
        is_stock = type(scaffold).finalize is v1.train.Scaffold.finalize
        if self.finalized or not is_stock or self._hooks_have_variables():
            yield
            return
        if scaffold.saver is None and not self.get_collection(v1.GraphKeys.SAVERS):
            self.saver = DefaultSaver(self)
            self.add_to_collection(v1.GraphKeys.SAVERS, self.saver)
        with self.hiding_variables():
            yield

    @contextlib.contextmanager
    def hiding_variables(self) -> Iterator[None]:
        """Return a context in which looking at collections makes no variables."""
        before, self._hides_variables = self._hides_variables, True
        try:
            yield
        finally:
            self._hides_variables = before

    def _hooks_have_variables(self) -> bool:
        if self.variables.are_made:
            return True  # hooks may have added to the collections they looked at
        keys = (*COLLECTIONS, v1.GraphKeys.SAVEABLE_OBJECTS)
        return any(super(LiveGraph, self).get_collection(key) for key in keys)

    # A method that lists variables, or all ops, makes the variables first.

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        self._list_variables(name in COLLECTIONS)
        return list(super().get_collection(name, scope))

    def get_collection_ref(self, name: str) -> list[Any]:
        self._list_variables(name in COLLECTIONS)
        return super().get_collection_ref(name)  # type: ignore[no-any-return]

    def get_all_collection_keys(self) -> list[str]:
        """Return the keys of collections that are in use; exports have these."""
        keys = super().get_all_collection_keys()
        return [k for k in keys if k not in COLLECTIONS or self.variables.are_made]

    def get_operations(self) -> list[Any]:
        self._list_variables(True)
        return list(super().get_operations())

    def _list_variables(self, is_wanted: bool) -> None:
        if is_wanted and not self._hides_variables:
            self.variables.make_all()

    def as_graph_element(
        self, obj: object, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """Return what `tf.Graph` does; give a step tensor a placeholder, and tap it.

        An unknown name raises a `KeyError`, as in TF, that lists the nearest
        names.
        """
        if isinstance(obj, bytes):  # as TensorFlow takes it
            obj = obj.decode()
        try:
            element = super().as_graph_element(obj, allow_tensor, allow_operation)
            if type(obj) is not str:
                return element
            # Whoever looks a name up may fetch it in a run without a step. So each
            # step returns it from now on. `Plan` taps those given as objects.
            self.tap(element.op.name if ":" in obj else element.name)
            return self.variables.values.get(element.name, element)
        except KeyError as e:
            if not isinstance(obj, str):
                raise
            name, saver = obj.split(":")[0], self.saver
            if self.variables.make_op(name) or (saver and saver.make_op(self, name)):
                return self.as_graph_element(obj, allow_tensor, allow_operation)
            added = self._placeholder_of(obj)
            if added is None:
                names = (f"{op.name}:0" for op in self.get_operations())
                raise self.names.no_tensor_error(
                    e, obj, "the training step", names
                ) from e
        self.tap(added.op.name)
        return super().as_graph_element(
            added.name if ":" in obj else added.op.name, allow_tensor, allow_operation
        )

    def tap(self, *placeholders: str) -> None:
        """Let each step return the step tensors among `placeholders` from now on."""
        for name in placeholders:
            if name in self.step_tensors:
                self.tapped[name] = self.step_tensors[name].key

    def _placeholder_of(self, name: str) -> Any:
        """Return the placeholder of the step tensor that `name` means, or None."""
        item = self.names.find(name)
        if item is None:
            return None
        for existing, existing_item in self.step_tensors.items():
            if existing_item == item and not existing.startswith(_LOOP):
                return super().as_graph_element(f"{existing}:0")
        return self._add_placeholder(item, name.split(":")[0])

    def _add_placeholder(self, item: StepTensor, name: str) -> Any:
        with self.growing():
            tensor = v1.placeholder(item.dtype, item.shape, name=name)
        self.step_tensors[tensor.op.name] = item
        return tensor


def _hidden(eager: object) -> ModelVariable:
    return ModelVariable(eager, "rate_in_force", trainable=False, local=True)
