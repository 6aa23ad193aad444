"""Variables that hooks make in `begin`; each run on a graph begins with new values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import AnyFunction, Session
from hookbridge.ground.walks import reached

v1 = tf.compat.v1

# By name: the variables that hooks have made in earlier runs, and their collections.
_EARLIER = Fact[dict[str, tuple[Any, list[str]]]]("graph", "variables of hooks")


class HookVariables:
    """Lets hooks call `get_variable` with the same name in every run.

    The graph outlives the run: without this, the second `fit` with a hook would fail,
    since the variable exists already.
    """

    def __init__(self, graph: tf.Graph) -> None:
        self._graph = graph
        self._made: dict[str, Any] = {}
        self._added: dict[str, list[Any]] = {}
        # Variables of earlier runs: to be initialised again, although they have values.
        self._again: list[Any] = []

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Return a context for `begin` of all hooks."""
        before = self._collections()
        with v1.variable_scope(
            v1.get_variable_scope(),
            custom_getter=self._get,
            auxiliary_name_scope=False,
        ):
            yield
        for key, values in self._collections().items():
            ids = {id(v) for v in before.get(key, ())}
            self._added[key] = [v for v in values if id(v) not in ids]

    def _collections(self) -> dict[str, list[Any]]:
        graph = self._graph
        return {k: graph.get_collection(k) for k in graph.get_all_collection_keys()}

    def _get(
        self, getter: AnyFunction, name: str, *args: object, **kwargs: object
    ) -> Any:
        """Return a getter of variables that finds those of earlier runs again."""
        earlier = _EARLIER.get_or_put(self._graph, dict)
        if name in earlier:
            variable, keys = earlier.pop(name)
            for key in keys:
                self._graph.add_to_collection(key, variable)
            self._again.append(variable)
        else:
            ids = {id(v) for v in [*v1.global_variables(), *v1.local_variables()]}
            variable = getter(name, *args, **kwargs)
            if id(variable) in ids:
                return variable
        self._made[name] = variable
        return variable

    def initialise(self, session: Session) -> None:
        """Initialise what has no value, and variables of earlier runs again."""
        graph = self._graph
        variables = [  # Keras initialises its own
            v
            for v in dict.fromkeys([*v1.global_variables(), *v1.local_variables()])
            if not getattr(v, "_keras_initialized", False)
        ]
        if variables:
            states = session.run([v1.is_variable_initialized(v) for v in variables])
            new = [
                variable
                for variable, is_known in zip(variables, states, strict=True)
                if not is_known
            ]
            for part in _in_parts([*self._again, *new]):
                session.run([v.initializer for v in part])
        for key in (v1.GraphKeys.RESOURCES, v1.GraphKeys.LOCAL_RESOURCES):
            for resource in graph.get_collection(key):
                if not session.run(resource.is_initialized):
                    session.run(resource.create)
        session.run(graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS))

    def leave(self) -> None:
        """Remove from the graph's collections what hooks have added."""
        earlier = _EARLIER.get_or_put(self._graph, dict)
        for name, variable in self._made.items():
            keys = [
                key
                for key, added in self._added.items()
                if any(v is variable for v in added)
            ]
            earlier[name] = (variable, keys)
        for key, added in self._added.items():
            values, ids = self._graph.get_collection_ref(key), set(map(id, added))
            values[:] = [v for v in values if id(v) not in ids]


def _in_parts(variables: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield parts of variables in which no initial value reads another variable.

    Schedules of Keras 2 make a rate that reads the counter of its optimizer, say.
    """
    part: dict[Any, Any] = {}  # by the op that holds a variable
    for variable in variables:
        if not part.keys().isdisjoint(reached([variable.initializer], _needed_by)):
            yield [*part.values()]
            part = {}
        part[variable.op] = variable
    if part:
        yield [*part.values()]


def _needed_by(op: tf.Operation) -> Iterator[tf.Operation]:
    """Yield the ops that have to run before an op."""
    yield from (tensor.op for tensor in op.inputs)
    yield from op.control_inputs
