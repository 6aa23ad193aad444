"""Which runs of a session are steps: reachability in the graph.

A run whose fetches reach an op that moves the counter (the global step of a
training graph, the eval step of an evaluation graph) is a step. Fetching data,
initializing an iterator or asking a queue for its size is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Ops that hand gradients over instead of moving the step themselves; the chief's
# queue runner moves it (tf.compat.v1.train.SyncReplicasOptimizer).
_PUSHES = ("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")
_PASSES = ("Identity", "RefIdentity", "Enter", "RefEnter", "Switch", "RefSwitch")


class Step:
    """What a run that is a step reaches; one object for each fetch structure.

    Attributes:
      tail: the op after which the counter has its new value, or None if only a
        read after the run can tell.
      ops: every op that the fetches need.
    """

    __slots__ = ("ops", "tail")

    def __init__(self, tail: Any, ops: frozenset[Any]) -> None:
        self.tail = tail
        self.ops = ops


def ancestors(ops: Iterable[Any]) -> frozenset[Any]:
    """Every op that has to run for `ops`, themselves included."""
    seen = set()
    todo = list(ops)
    while todo:
        op = todo.pop()
        if op not in seen:
            seen.add(op)
            todo.extend(t.op for t in op.inputs)
            todo.extend(op.control_inputs)
    return frozenset(seen)


def handle_op(variable: Any) -> Any:
    """The op that stands for a variable: its resource handle or its reference."""
    handle = getattr(variable, "handle", None)
    return handle.op if handle is not None and hasattr(handle, "op") else variable.op


def _source(tensor: Any) -> Any:
    """The op a tensor comes from, looking through ops that only pass it on."""
    op = tensor.op
    while op.type in _PASSES and op.inputs:
        op = op.inputs[0].op
    return op


class StepGraph:
    """Finds the steps among the runs on one graph.

    Args:
      graph: the `tf.Graph`.
      counter: the variable that a step moves, or None if there is none; then a run
        that applies gradients is a step.
    """

    def __init__(self, graph: Any, counter: Any) -> None:
        self._graph = graph
        ops = graph.get_operations()
        self.movers = self._find_movers(ops, counter) if counter is not None else []
        self.pushes = [op for op in ops if op.type in _PUSHES]
        self.applies = [op for op in ops if is_apply(op)]
        self._tokens = [op for op in ops if _takes_token(op)]
        self._conditional = any(op.type in ("Switch", "RefSwitch") for op in ops)
        self._cache: dict[Any, tuple[Any, Step | None]] = {}
        self._last: tuple[Any, Step | None] = (object(), None)

    @property
    def trains(self) -> bool:
        """Whether any run on this graph can be a step."""
        return bool(self.movers or self.pushes or self.applies)

    def step_of(self, fetches: Any) -> Step | None:
        """The step that a run of `fetches` is, or None if it is none.

        Args:
          fetches: what was given to `Session.run`, of any structure. The answer is
            remembered, so that asking again costs a dictionary look-up.
        """
        if fetches is self._last[0]:
            return self._last[1]
        key = _key(fetches)
        if key not in self._cache:
            # The fetches are kept so that their ids stay theirs.
            self._cache[key] = (_frozen(fetches), self._analyse(fetches))
        # A list may be changed and given again; what it holds decides.
        if not isinstance(fetches, (list, dict)):
            self._last = (fetches, self._cache[key][1])
        return self._cache[key][1]

    def tails(self) -> list[Any]:
        """The ops after which a read of the counter can be ordered."""
        return [op for op in (*self.movers, *self._tokens) if self._unconditional(op)]

    def _analyse(self, fetches: Any) -> Step | None:
        reached = ancestors(self.operations(fetches))
        movers = [op for op in self.movers if op in reached]
        if movers:
            # With several movers in one run only a read after the last would do.
            tail = movers[0] if len(movers) == 1 else None
            if tail is not None and not self._unconditional(tail):
                tail = None
            return Step(tail, reached)
        if any(op in reached for op in self.pushes):
            tokens = [op for op in self._tokens if op in reached]
            return Step(tokens[0] if tokens else None, reached)
        # Without any op that moves the counter, applying gradients is the step.
        if not self.movers and not self.pushes:
            applied = [op for op in self.applies if op in reached]
            if applied:
                return Step(None, reached)
        return None

    def operations(self, fetches: Any) -> list[Any]:
        """The ops behind `fetches`: tensors, ops, names, variables, structures."""
        found: list[Any] = []
        for leaf in _leaves(fetches):
            for part in _parts(leaf):
                element = self._graph.as_graph_element(part)
                found.append(getattr(element, "op", element))
        return found

    def _unconditional(self, op: Any) -> bool:
        if not self._conditional:
            return True
        return not any(
            a.type in ("Switch", "RefSwitch", "Enter", "RefEnter")
            for a in ancestors([op])
        )

    def _find_movers(self, ops: Iterable[Any], counter: Any) -> list[Any]:
        own = handle_op(counter)
        initializer = counter.initializer
        movers = []
        for op in ops:
            if not op.inputs or op is initializer:
                continue
            sources = [t for t in op.inputs if t.op is own or _source(t) is own]
            if not sources:
                continue
            if op.type in ("AssignAdd", "AssignAddVariableOp", "ScatterAdd"):
                movers.append(op)
            elif op.type in ("Assign", "AssignVariableOp"):
                # `assign(step, step + 1)` counts; restoring a checkpoint does not.
                if own in ancestors(t.op for t in list(op.inputs)[1:]):
                    movers.append(op)
            elif op.type in _CALLS and self._function_moves(op, own):
                movers.append(op)
        return movers

    def _function_moves(self, op: Any, own: Any) -> bool:
        """Whether a function called in the graph adds to the counter."""
        library = self._graph.as_graph_def().library.function
        functions = {f.signature.name: f for f in library}

        def moves(name: str, index: int, seen: frozenset[str]) -> bool:
            function = functions.get(name)
            if function is None or name in seen:
                return False
            argument = function.signature.input_arg[index].name
            for node in function.node_def:
                inputs = [i.split(":")[0] for i in node.input if i[0] != "^"]
                if argument not in inputs:
                    continue
                if node.op == "AssignAddVariableOp":
                    return True
                # The first input of a conditional is its predicate.
                shift = 1 if node.op in ("If", "StatelessIf", "Case") else 0
                for attr in _called(node.attr):
                    at = inputs.index(argument) - shift
                    if moves(attr, at, seen | {name}):
                        return True
            return False

        index = next(i for i, t in enumerate(op.inputs) if _source(t) is own)
        index -= 1 if op.type in ("If", "StatelessIf", "Case") else 0
        return any(moves(n, index, frozenset()) for n in _called(op.node_def.attr))


_CALLS = (
    "PartitionedCall",
    "StatefulPartitionedCall",
    "If",
    "While",
    "Case",
)


def _called(attributes: Mapping[str, Any]) -> list[str]:
    """Names of the functions that an op's attributes refer to."""
    names = []
    for value in attributes.values():
        if value.HasField("func"):
            names.append(value.func.name)
        elif value.HasField("list"):
            names.extend(f.name for f in value.list.func)
    return names


def is_apply(op: Any) -> bool:
    """Whether an op is an optimizer's update of a variable."""
    kind = op.type.removeprefix("Resource").removeprefix("Sparse")
    return kind.startswith("Apply") and kind not in ("ApplyGradient",)


def _takes_token(op: Any) -> bool:
    """Whether an op stores a token of `SyncReplicasOptimizer`: the step is over."""
    if op.type not in ("Assign", "AssignVariableOp") or len(op.inputs) < 2:
        return False
    return bool(_source(op.inputs[1]).type.startswith("QueueDequeue"))


def _key(fetches: Any) -> Any:
    if isinstance(fetches, str):
        return fetches
    if isinstance(fetches, (list, tuple)):
        return tuple(map(_key, fetches))
    if isinstance(fetches, Mapping):
        return tuple((k, _key(v)) for k, v in fetches.items())
    return id(fetches)


def _frozen(fetches: Any) -> Any:
    """The leaves of a structure that may be changed, or the leaf itself."""
    if isinstance(fetches, (list, tuple, Mapping)):
        return list(_leaves(fetches))
    return fetches


def _leaves(fetches: Any) -> Iterable[Any]:
    if fetches is None:
        return
    if isinstance(fetches, (list, tuple)):
        for item in fetches:
            yield from _leaves(item)
    elif isinstance(fetches, Mapping):
        for item in fetches.values():
            yield from _leaves(item)
    elif hasattr(type(fetches), "__attrs_attrs__"):
        for field in type(fetches).__attrs_attrs__:
            yield from _leaves(getattr(fetches, field.name))
    else:
        yield fetches


def _parts(leaf: Any) -> list[Any]:
    """A sparse or ragged fetch as its dense tensors; anything else as itself."""
    import tensorflow as tf

    if isinstance(leaf, (tf.compat.v1.SparseTensor, tf.IndexedSlices, tf.RaggedTensor)):
        return list(tf.nest.flatten(leaf, expand_composites=True))
    return [leaf]
