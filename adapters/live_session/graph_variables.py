"""The variables of a live graph, which are made when somebody looks at them.

The handle of such a variable is a placeholder, on which savers, summaries and hooks
build ops as on any v1 variable. When the ops run, the handle of the eager variable
replaces it, so there is one copy of every weight. A graph begins with names only: to
build the variables of a big model takes longer than a few steps, and most hooks look at
none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.keras_model.variables import ModelVariable, components
from hookbridge.adapters.live_session.growing_graph import GrowingGraph
from hookbridge.adapters.live_session.needed_ops import NeededOps
from hookbridge.ground import compat
from hookbridge.ground.protocols import Tensor

v1 = tf.compat.v1

# The collections that hold variables.
COLLECTIONS: tuple[str, ...] = (
    v1.GraphKeys.GLOBAL_VARIABLES,
    v1.GraphKeys.TRAINABLE_VARIABLES,
    v1.GraphKeys.LOCAL_VARIABLES,
)
# The suffixes of a variable's ops: the handle itself, and the ops on it.
_READ, _VALUE = "/Read/ReadVariableOp", "/current_value"
_ASSIGN, _INITIALIZED = "/Assign", "/IsInitialized"
_PARTS = ("", _READ, _VALUE, _ASSIGN, _INITIALIZED)


class GraphVariables:
    """The variables of one live graph."""

    def __init__(self, graph: GrowingGraph, variables: Sequence[ModelVariable]) -> None:
        self._graph = graph
        # `unique_name` reserves the names, so no other op can take them.
        self._known = {graph.unique_name(v.name): v for v in variables}
        self._made: dict[str, Any] = {}
        # Variables that only ops of this graph use, by the names of their handles.
        self._hidden: dict[str, ModelVariable] = {}
        # Names of made variables that the model no longer has.
        self.replaced: set[str] = set()
        self._is_renewed = False
        # By their placeholders: the variables that the ops work on now.
        self.handles: dict[str, ModelVariable] = {}
        # Values by the names of handles: the name `<variable>:0` means the value.
        self.values: dict[str, Any] = {}
        # Which tensor the initializer of a variable assigns.
        self.self_assigns: dict[str, str] = {}
        self.are_made: bool = False  # whether all are in the graph and its collections

    def saved(self) -> dict[str, ModelVariable]:
        """Return what a checkpoint holds: `{name: variable}` but for local ones."""
        return {n: v for n, v in self._known.items() if not v.local}

    def find_by_value(self, tensor: Tensor) -> ModelVariable | None:
        """Return the variable whose value a tensor of the graph is, or None."""
        return self.handles.get(tensor.name.removesuffix(f"{_READ}:0"))

    def names_of(self, eager: Any) -> list[str]:
        """Return the names in the graph of the eager variables that it has."""
        wanted = set(map(id, eager))
        return [n for n, v in self._known.items() if id(v.eager) in wanted]

    def make(self, variable: ModelVariable) -> Any:
        """Return the graph variable for a variable of the model."""
        name = next(n for n, known in self._known.items() if known is variable)
        if name not in self._made:
            self._add([name])
        return self._made[name]

    def make_hidden(self, name: str, variable: ModelVariable) -> Any:
        """Return the graph variable for one that no name and no collection leads to."""
        name = self._graph.unique_name(name)
        self._hidden[name] = variable
        self._add([name])
        return self._made[name]

    def renew(self, variables: Sequence[ModelVariable]) -> None:
        """Take the variables that the model has now; equal names mean the new ones."""
        before, self._known = self._known, {}
        for variable in variables:
            name = variable.name
            same = before.pop(name, None)
            if same is not None and _is_like(same, variable):
                self._known[name] = variable
                if name in self._made:
                    self.handles[name] = variable
            else:
                self._known[self._graph.unique_name(name)] = variable
        self._is_renewed = True
        self.replaced |= before.keys() & self._made.keys()
        if self.are_made:
            for key in COLLECTIONS:
                made_ids = list(map(id, self._made.values()))
                collection = self._graph.get_collection_ref(key)
                collection[:] = [v for v in collection if id(v) not in made_ids]
            self.are_made = False
            self.make_all()

    def check_current(self, needed: NeededOps) -> None:
        """Refuse ops on variables of an optimizer that the model no longer has."""
        old = sorted(needed.handles & self.replaced)
        if old:
            raise errors.LiveSessionError(
                f"An op of a hook uses `{old[0]}`, a variable of an optimizer that a "
                "callback has replaced during this `fit`. Look the variable up in "
                "the step that needs it; `learning_rate:0` is the rate of the "
                "optimizer in force. To save, use a `CheckpointSaverHook` without "
                "`saver` or `scaffold`.",
                see="live session",
            )
        slots = {n for n, v in self._known.items() if v.is_of_optimizer}
        missing = sorted(slots - needed.handles)
        saves = any(op.type == "SaveV2" for op in (*needed.before, *needed.after))
        if self._is_renewed and saves and missing and slots & needed.handles:
            raise errors.LiveSessionError(
                "A callback has compiled the model again during this `fit`, and the "
                f"saver of a hook does not save `{missing[0]}` of the optimizer that "
                "it has now. To save, use a `CheckpointSaverHook` without `saver` or "
                "`scaffold`, in a `fit` where no hook makes variables.",
                see="live session",
            )

    def _variable(self, name: str) -> ModelVariable:
        return self._hidden[name] if name in self._hidden else self._known[name]

    def make_op(self, op_name: str) -> bool:
        """Make the variable that has an op of that name; return whether one has."""
        for part in _PARTS:
            name = op_name.removesuffix(part)
            if name + part == op_name and name in self._known:
                if name in self._made:
                    return False
                self._add([name])
                return True
        return False

    def make_all(self) -> None:
        """Make the variables that are not made yet, and fill the collections."""
        if self.are_made:
            return
        self.are_made = True
        self._add([name for name in self._known if name not in self._made])
        for key in COLLECTIONS:
            # In front of what hooks have added, so that the order does not depend on
            # when somebody first looked.
            self._graph.get_collection_ref(key)[:0] = [
                self._made[name]
                for name, variable in self._known.items()
                if key in _keys(variable)
            ]

    def _add(self, names: Sequence[str]) -> None:
        """Import the ops of some variables into the graph."""
        # An import takes a quarter of the time of building op by op.
        definition = v1.GraphDef(versions=self._graph.graph_def_versions)
        for name in names:
            dtype = components(self._variable(name).eager)[0].dtype
            definition.node.extend(_nodes(name, dtype.as_datatype_enum))
        outputs = [
            node.name if node.op == "AssignVariableOp" else f"{node.name}:0"
            for node in definition.node
        ]
        with self._graph.growing():
            elements = tf.graph_util.import_graph_def(definition, None, outputs, "")
            for index, name in enumerate(names):
                first = index * len(_PARTS)
                self._enter(name, *elements[first : first + len(_PARTS)])

    def _enter(
        self,
        name: str,
        handle: tf.Tensor,
        read: tf.Tensor,
        value: tf.Tensor,
        assign: tf.Operation,
        is_ready: tf.Tensor,
    ) -> None:
        """Make the graph variable of ops that were imported."""
        variable = self._variable(name)
        first = components(variable.eager)[0]
        compat.private("copy_handle_data")(first.handle, handle)
        read.set_shape(first.shape)
        value.set_shape(first.shape)
        self._made[name] = compat.private("BaseResourceVariable")(
            trainable=variable.trainable,
            shape=first.shape,
            dtype=first.dtype,
            handle=handle,
            handle_name=name,
            unique_id=f"{name}_{id(variable)}",
            graph_element=read,
            initial_value=value,
            initializer_op=assign,
            is_initialized_op=is_ready,
            in_graph_mode=True,
            synchronization=tf.VariableSynchronization.NONE,
            aggregation=tf.VariableAggregation.NONE,
        )
        self.handles[name] = variable
        self.values[handle.name] = read
        self.self_assigns[assign.name] = value.name


def _is_like(one: ModelVariable, other: ModelVariable) -> bool:
    """Return whether ops on one variable can work on the other."""
    first, second = components(one.eager)[0], components(other.eager)[0]
    return bool(first.dtype == second.dtype and first.shape == second.shape)


def _keys(variable: ModelVariable) -> set[str]:
    """Return the collections that a variable belongs to."""
    kind = COLLECTIONS[2] if variable.local else COLLECTIONS[0]
    return {kind, COLLECTIONS[1]} if variable.trainable else {kind}


def _nodes(name: str, dtype: int) -> list[Any]:
    """Make the ops of a variable; its initializer keeps the model's value."""

    def node(part: str, op: str, *inputs: str, **types: int) -> Any:
        result = v1.NodeDef(name=f"{name}{part}", op=op, input=inputs)
        for key, kind in types.items():
            result.attr[key].type = kind
        return result

    handle = node("", "Placeholder", dtype=tf.resource.as_datatype_enum)
    handle.attr["shape"].shape.CopyFrom(tf.TensorShape([]).as_proto())
    return [
        handle,
        node(_READ, "ReadVariableOp", name, dtype=dtype),
        node(_VALUE, "Identity", f"{name}{_READ}", T=dtype),
        node(_ASSIGN, "AssignVariableOp", name, f"{name}{_VALUE}", dtype=dtype),
        node(_INITIALIZED, "VarIsInitializedOp", name),
    ]


class DefaultSaver(tf.compat.v1.train.Saver):  # type: ignore[misc]
    """The `Saver` that a `Scaffold` makes by default, without its ops.

    There would be a few ops for each variable of the model. A live session saves
    without them; they are made when somebody looks for one, as `restore` does.
    """

    def __init__(self, graph: GrowingGraph) -> None:
        super().__init__(
            saver_def=v1.train.SaverDef(
                filename_tensor_name="save/Const:0",
                save_tensor_name="save/Identity:0",
                restore_op_name="save/restore_all",
                max_to_keep=5,
                sharded=True,
                keep_checkpoint_every_n_hours=10000,
                version=v1.train.SaverDef.V2,
            )
        )
        self.renew(graph)

    def renew(self, graph: GrowingGraph) -> None:
        """Name new ops, which are made when they are asked for."""
        self._scope = graph.unique_name("save")
        self._has_ops = False
        names = self.saver_def
        names.filename_tensor_name = f"{self._scope}/Const:0"
        names.save_tensor_name = f"{self._scope}/Identity:0"
        names.restore_op_name = f"{self._scope}/restore_all"

    def export_meta_graph(self, *args: object, **kwargs: object) -> Any:
        """Export the graph as it is now, as `Saver.export_meta_graph` does."""
        # A hook keeps its saver, so the default graph may be that of a later run.
        hiding = getattr(v1.get_default_graph(), "hiding_variables", None)
        with contextlib.nullcontext() if hiding is None else hiding():
            return super().export_meta_graph(*args, **kwargs)

    def path_of(
        self, fetches: object, feed_dict: Mapping[Any, Any] | None
    ) -> str | None:
        """Return the path for a run that only saves the model; None for any other run.

        Args:
          fetches: what the run fetches.
          feed_dict: what it feeds: the path, to the saver's placeholder.
        """
        names = self.saver_def
        if type(fetches) is not str or fetches != names.save_tensor_name:
            return None
        if not feed_dict or set(feed_dict) != {names.filename_tensor_name}:
            return None
        return str(feed_dict[names.filename_tensor_name])

    def make_op(self, graph: GrowingGraph, op_name: str) -> bool:
        """Make the ops if one of them may have that name; return whether it did."""
        if self._has_ops or not op_name.startswith(f"{self._scope}/"):
            return False
        self._has_ops = True
        with graph.growing():
            v1.train.Saver(sharded=True, allow_empty=True, name=f"{self._scope}/")
        return True


def read(variables: Mapping[str, ModelVariable]) -> dict[str, tf.Tensor]:
    """Return the values of variables, on the CPU.

    Later updates leave them as they are: TensorFlow copies a value that somebody holds
    before it updates the variable.
    """
    with tf.device("CPU:0"):
        return {
            name: tf.raw_ops.ReadVariableOp(
                resource=variable.handle, dtype=components(variable.eager)[0].dtype
            )
            for name, variable in variables.items()
        }


def save(path: str, values: Mapping[str, tf.Tensor]) -> None:
    """Write a checkpoint."""
    with tf.device("CPU:0"):
        tf.raw_ops.SaveV2(
            prefix=path,
            tensor_names=list(values),
            shape_and_slices=[""] * len(values),
            tensors=list(values.values()),
        )
