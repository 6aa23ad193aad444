"""Eager variables that stand for variables of a graph.

A callback gets a real `tf.Variable`, so that Keras's backend functions, numpy and
`tf.summary` work on it. Its value is pulled from the session when it is handed out;
what the callback changed is pushed back after its event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hookbridge import compat
from hookbridge.adapters import session_variables


def eager_variable(value: Any, name: str, dtype: Any = None) -> Any:
    """A new eager variable, whatever graph is the default one."""
    import tensorflow as tf

    with compat.private("eager_mode")(), tf.device("/cpu:0"):
        variable = tf.Variable(value, name=name, dtype=dtype, trainable=False)
    # What Keras 3 callbacks call a variable by.
    variable.path = name
    return variable


class Mirrors:
    """The eager mirrors of one session's variables.

    Args:
      session: a function that returns the raw session, or None before there is one.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._eager: dict[int, Any] = {}
        self._graph: dict[int, Any] = {}
        self._pulled: dict[int, Any] = {}

    def adopt(self, variable: Any, eager: Any) -> None:
        """Uses an eager variable that exists already as the mirror of `variable`."""
        if not hasattr(eager, "path"):
            eager.path = variable.op.name
        self._eager[id(variable)] = eager
        self._graph[id(variable)] = variable

    def of(self, variables: Sequence[Any]) -> list[Any]:
        """Mirrors of several graph variables, with their present values."""
        for variable in variables:
            if id(variable) not in self._eager:
                dtype = variable.dtype.base_dtype
                shape = [d or 0 for d in variable.shape.as_list()]
                blank = np.zeros(shape, dtype.as_numpy_dtype)
                self.adopt(variable, eager_variable(blank, variable.op.name, dtype))
        self.push()  # what was assigned to them earlier in this event
        self.pull(variables)
        return [self._eager[id(v)] for v in variables]

    def pull(self, variables: Sequence[Any]) -> None:
        """Brings the session's values into the mirrors of `variables`."""
        session = self._session()
        if session is None:
            return
        read = session_variables.read(session, variables)
        with compat.private("eager_mode")():
            for variable, value in zip(variables, read, strict=True):
                self._eager[id(variable)].assign(value)
                self._pulled[id(variable)] = np.array(value)

    def refresh(self) -> None:
        """Pulls every mirror that was handed out before."""
        if self._pulled:
            self.pull([self._graph[key] for key in self._pulled])

    def push(self) -> bool:
        """Writes the mirrors that were changed to the session; whether any was."""
        session = self._session()
        if session is None or not self._pulled:
            return False
        changed = []
        with compat.private("eager_mode")():
            for key, before in self._pulled.items():
                now = self._eager[key].numpy()
                if not np.array_equal(now, before, equal_nan=now.dtype.kind in "fc"):
                    changed.append((key, np.array(now)))
        session_variables.write(session, [(self._graph[k], v) for k, v in changed])
        self._pulled.update(changed)
        return bool(changed)
