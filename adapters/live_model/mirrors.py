"""Mirrors: eager variables with the values of a graph's variables.

A callback gets a real `tf.Variable`, so that Keras's backend functions, numpy and
`tf.summary` work on it. Its value is pulled from the session when it is handed out;
what the callback changed is pushed back after its event. A mirror that a callback keeps
is pulled again as each event begins or, in events of a batch, when it is used.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.live_model import watched as watched_variable
from hookbridge.adapters.session_graph import variables as session_variables


def eager_variable(value: Any, name: str, dtype: Any = None) -> Any:
    """A new eager variable, whatever graph is the default one."""
    with compat.private("eager_mode")(), tf.device("/cpu:0"):
        variable = tf.Variable(value, name=name, dtype=dtype, trainable=False)
    # Keras 3 callbacks name a variable by its path.
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
        # Within an event: the mirrors whose values are older than the event.
        self._stale: set[int] = set()
        self._events = 0  # how many are going on: a validation's may be within one
        # Mirrors that were used while they were stale; they are pulled together.
        self._used: set[int] = set()
        # Mirrors whose use is not seen: a compiled function has their handles.
        self._captured: set[int] = set()
        self._is_own_call = False

    def adopt(self, variable: Any, eager: Any) -> None:
        """Uses an eager variable that exists already as the mirror of `variable`."""
        if not hasattr(eager, "path"):
            eager.path = variable.op.name
        key = id(variable)
        self._eager[key] = eager
        self._graph[key] = variable
        # The variable may outlive the session.
        listener = functools.partial(_tell, weakref.ref(self), key)
        if not watched_variable.watch(eager, listener):
            self._captured.add(key)

    def has(self, eager: Any) -> bool:
        """Whether an eager variable is one of the mirrors."""
        return any(eager is mirror for mirror in self._eager.values())

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
        self._stale.difference_update(map(id, variables))
        with compat.private("eager_mode")():
            for variable, value in zip(variables, read, strict=True):
                self._eager[id(variable)].assign(value)
                self._pulled[id(variable)] = np.array(value)

    def begin_event(self, *, of_batch: bool) -> None:
        """Brings the mirrors that were handed out before up to date.

        In events of a batch they are pulled when they are used: few are, and such an
        event comes twice in each step.
        """
        self._events += 1
        if not self._pulled:
            return
        if of_batch:
            self._stale = set(self._pulled)
            self._pull_keys(self._captured & self._stale)
        else:
            self._pull_keys(self._pulled)

    def end_event(self) -> None:
        """Between events a mirror keeps its last value: there may be no session."""
        self._events -= 1
        if not self._events:
            self._stale = set()

    def expire(self, variables: Sequence[Any]) -> None:
        """Notes that values were written to the session without the mirrors."""
        if self._events:
            self._stale.update(k for k in map(id, variables) if k in self._pulled)
            self._pull_keys(self._captured & self._stale)

    def push(self) -> None:
        """Writes the mirrors that were changed to the session."""
        session = self._session()
        if session is None or not self._pulled:
            return
        changed = []
        with compat.private("eager_mode")():
            for key, before in self._pulled.items():
                if key in self._stale:
                    continue
                now = self._eager[key].numpy()
                if not np.array_equal(now, before, equal_nan=now.dtype.kind in "fc"):
                    changed.append((key, np.array(now)))
        session_variables.write(session, [(self._graph[k], v) for k, v in changed])
        self._pulled.update(changed)

    @contextlib.contextmanager
    def own_call(self) -> Iterator[None]:
        """Around a call before which the present values were pulled."""
        before, self._is_own_call = self._is_own_call, True
        try:
            yield
        finally:
            self._is_own_call = before

    def _pull_keys(self, keys: Collection[int]) -> None:
        if keys:
            self.pull([self._graph[key] for key in keys])

    def about_to_use(self, key: int) -> None:
        """A mirror's value is about to be read or assigned."""
        if key in self._stale:
            self._used.add(key)
            self._pull_keys(self._used & self._stale)
        if not self._is_own_call and not tf.executing_eagerly():
            self._captured.add(key)


def _tell(mirrors: weakref.ref[Mirrors], key: int) -> None:
    told = mirrors()
    if told is not None:
        told.about_to_use(key)
