"""Mirrors: eager variables with the values of a graph's variables.

A callback gets real `tf.Variable`s, on which Keras's backend functions, numpy and
`tf.summary` work. A mirror takes the session's value when it is used; what was assigned
to it is written to the session after the event, or before the next run. So an event
costs nothing for weights that it does not use, whatever was handed out before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_model.mirror import (
    Mirror,
    blank_shape,
    eager_variable,
)
from hookbridge.adapters.session_graph import session_variables
from hookbridge.ground import compat
from hookbridge.ground.patching import temporarily
from hookbridge.ground.protocols import Context, Variable

_MOST_BYTES = 2**25  # read in one run


class Mirrors:
    """The eager mirrors of one session's variables."""

    def __init__(self, session: Callable[[], Any]) -> None:
        self._session = session
        self._by_variable: dict[int, Mirror] = {}
        self._provide: Callable[[], None] | None = None
        self._events = 0  # open events: a validation's may be nested in another
        self._now = 0  # the event's number; a mirror with another stamp is older
        self._is_over = False
        self._handed_out: dict[int, Mirror] = {}
        self.touched: dict[int, Mirror] = {}  # used since the last `push`, by id
        # Mirrors whose use is not seen: a compiled function has their handles.
        self._captured: dict[int, Mirror] = {}
        # The same, but only functions of the clone have the handles. They are called
        # only after their weights were filled in.
        self._captured_by_clone: dict[int, Mirror] = {}
        # Mirrors used in this event, and in the last event that used some.
        self._used: dict[int, Mirror] = {}
        self._expected: dict[int, Mirror] = {}
        self._is_own_call = False
        # While Keras saves: arrays of the session, and mirrors that one run reads.
        self._read_arrays: dict[int, Any] = {}
        self._read_with: dict[int, list[Mirror]] = {}

    def before_first(self, provide: Callable[[], None]) -> None:
        """Set a function to call before the first mirror is made; it may `adopt`."""
        self._provide = provide

    def adopt(self, variable: Variable, eager: object) -> None:
        """Use an eager variable that exists already as the mirror of `variable`."""
        with compat.private("eager_mode")():
            mirror = self._by_variable[id(variable)] = Mirror(variable, eager, self)
            if not mirror.is_watched:
                self._captured[id(mirror)] = mirror

    def has(self, eager: object) -> bool:
        """Return whether an eager variable is one of the mirrors."""
        return any(eager is mirror.eager for mirror in self._by_variable.values())

    def hand_out(self, variables: Sequence[Any]) -> list[Any]:
        """Return mirrors of graph variables, whose next use reads the session."""
        mirrors = self._mirrors(variables)
        self._handed_out.update((id(m), m) for m in mirrors)
        self._make_stale(mirrors)
        if self._captured_by_clone:
            self._pull([m for m in mirrors if id(m) in self._captured_by_clone])
        return [m.eager for m in mirrors]

    def fill_for_methods(self, variables: Sequence[Any]) -> None:
        """Fill the mirrors that methods of the clone use, now and in each event."""
        self._captured.update(self._captured_by_clone)
        self._captured_by_clone = self._captured
        self.fill(variables)

    def fill(self, variables: Sequence[Any]) -> None:
        """Bring the session's present values into the mirrors of `variables`."""
        mirrors = self._mirrors(variables)
        self._make_stale(mirrors)
        self._pull(mirrors)

    def _mirrors(self, variables: Sequence[Any]) -> list[Mirror]:
        """Return the mirrors of variables.

        Those that nobody has asked for are made now.
        """
        provide, self._provide = self._provide, None
        if provide is not None:
            provide()
        for variable in variables:
            if id(variable) not in self._by_variable:
                dtype = variable.dtype.base_dtype
                blank = np.zeros(blank_shape(variable), dtype.as_numpy_dtype)
                name, shape = variable.op.name, variable.shape
                self.adopt(variable, eager_variable(blank, name, dtype, shape))
        return [self._by_variable[id(v)] for v in variables]

    def begin_event(self) -> None:
        """Let each mirror take the session's value when it is used from here on."""
        if self.touched:
            self.push()  # assigned between events
        self._events += 1
        self._now += 1
        self._used = {}
        if self._captured:
            self._pull(self._captured.values())

    def end_event(self) -> None:
        """End an event: the next one is expected to use the same mirrors."""
        self.touched.clear()  # an event that failed did not push
        self._events -= 1
        self._expected, self._used = self._used or self._expected, {}

    def end_run(self) -> None:
        """Give mirrors that were handed out their last value, for later use."""
        self.push()
        self._pull(self._handed_out.values())
        self._is_over = True

    def expire(self, variables: Iterable[Any]) -> None:
        """Note that the session's values were set directly, past their mirrors."""
        keys = map(id, variables)
        self._make_stale(
            [self._by_variable[key] for key in keys if key in self._by_variable]
        )

    def push(self) -> None:
        """Write values that were assigned to mirrors to the session."""
        touched = {**self.touched, **self._captured}
        self.touched.clear()
        if self._is_over or not touched:
            return
        changed = []
        with compat.private("eager_mode")():
            for mirror in touched.values():
                value = mirror.assigned() if mirror.stamp == self._now else None
                if value is not None:
                    changed.append((mirror.variable, value))
        if not changed:
            return
        session = self._session()
        if session is None:
            raise errors.LiveModelError(
                f"A callback assigned the weight `{changed[0][0].op.name}` before the "
                "session exists (in `set_model`). Under hookbridge "
                "weights have values, and can be assigned, from `on_train_begin` on. "
                "Move the assignment to `on_train_begin`.",
                see="model in a session",
            )
        try:
            session_variables.write(session, changed)
        except RuntimeError:
            if self._events:
                raise
            # The session is closed: mirrors keep what they have.

    def own_call(self) -> Context:
        """Return a context for a call of the clone whose weights were filled in."""
        return temporarily(self, _is_own_call=True)

    @contextlib.contextmanager
    def file_call(self, variables: Sequence[Any]) -> Iterator[None]:
        """Let Keras load or save weights in a context, and read each of them once."""
        # The arrays go from the session into the file; the mirrors stay as they are.
        mirrors = self._mirrors(variables)
        self._make_stale(mirrors)
        self._read_with = {id(m): group for group in _groups(mirrors) for m in group}
        try:
            with self.own_call():
                yield
        finally:
            self._read_arrays, self._read_with = {}, {}
        self.push()

    def give_away(self, mirror: Mirror) -> Any:
        """Give Keras an array while it saves."""
        key = id(mirror)
        if key not in self._read_arrays:
            group = self._read_with.get(key)
            if group is None or not self._is_stale(mirror):
                return None
            self._read_arrays.update(
                self._read([m for m in group if self._is_stale(m)])
            )
            for member in group:
                del self._read_with[id(member)]
        return self._read_arrays.pop(key, None)

    def about_to_use(self, mirror: Mirror) -> None:
        """Take the session's value if the mirror's own is older."""
        key = id(mirror)
        if not self._events and key in self.touched:
            self.push()  # reading the session would overwrite what was assigned
        if self._is_stale(mirror):
            self._pull(self._batch_for(mirror))
        self.touched[key] = self._used[key] = mirror
        if not tf.executing_eagerly():
            is_own_call = self._is_own_call
            (self._captured_by_clone if is_own_call else self._captured)[key] = mirror

    def _batch_for(self, mirror: Mirror) -> Collection[Mirror]:
        """Return the mirrors to read with this one: a run for each would cost more.

        They are the mirrors that the last event used. A mirror that was not expected is
        read alone if it is the event's first one, and otherwise with all others.
        """
        if id(mirror) in self._read_with:
            return self._read_with[id(mirror)]
        if not self._events:
            return [mirror]
        if id(mirror) in self._expected:
            return self._expected.values()
        return self._by_variable.values() if self._used else [mirror]

    def _is_stale(self, mirror: Mirror) -> bool:
        # Between events steps may run unseen.
        return not self._is_over and (not self._events or mirror.stamp != self._now)

    def _make_stale(self, mirrors: Sequence[Mirror]) -> None:
        """Let the next use of these mirrors read the session."""
        self.push()  # keeps what was assigned to them earlier in this event
        for mirror in mirrors:
            mirror.stamp = -1
        if self._events:
            keys = map(id, mirrors)
            self._pull([self._captured[k] for k in keys if k in self._captured])

    def _pull(self, mirrors: Iterable[Mirror]) -> None:
        """Bring the session's values into those mirrors that have older ones."""
        for group in _groups([m for m in mirrors if self._is_stale(m)]):
            arrays = self._read_arrays
            values = {id(m): arrays.pop(id(m)) for m in group if id(m) in arrays}
            values.update(self._read([m for m in group if id(m) not in values]))
            with compat.private("eager_mode")():
                for mirror in group:
                    mirror.stamp = self._now
                    if id(mirror) in values:
                        mirror.set(values.pop(id(mirror)))
                    elif mirror.is_empty:
                        mirror.clear()  # before the session there is no value
                    self.touched.pop(id(mirror), None)

    def _read(self, mirrors: Sequence[Mirror]) -> dict[int, Any]:
        """Return the session's values; empty before the session and after its end."""
        session = self._session()
        if session is None or not mirrors:
            return {}
        try:
            values = session_variables.read(session, [m.variable for m in mirrors])
        except RuntimeError as e:
            if self._events:
                raise
            # The session is closed: mirrors keep what they have.
            empty = [m.variable.op.name for m in mirrors if m.is_empty]
            if not empty:
                return {}
            raise errors.LiveModelError(
                f"The weight `{empty[0]}` was used after its session was closed by an "
                "error. No callback had read it before, so its value is lost. Read "
                "weights in an event of the callback, such as `on_epoch_end`.",
                see="model in a session",
            ) from e
        return dict(zip(map(id, mirrors), values, strict=True))


def _groups(mirrors: Iterable[Mirror]) -> Iterator[list[Mirror]]:
    """Yield the mirrors to read in each run: up to `_MOST_BYTES`, but one at least."""
    # Each run costs time, and the values that it reads cost memory.
    group: list[Mirror] = []
    size = 0
    for mirror in mirrors:
        if group and size + mirror.bytes > _MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(mirror)
        size += mirror.bytes
    if group:
        yield group
