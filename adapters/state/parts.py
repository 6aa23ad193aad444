"""Callbacks whose state is kept: the state that they have now."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from hookbridge.adapters.state import attributes, identity
from hookbridge.adapters.state.document import Entry
from hookbridge.adapters.state.loop_state import LoopState
from hookbridge.adapters.state.restored_state import RestoredState, give_state


class Part:
    """The state of callbacks whose events come together.

    Args:
      callbacks: the callbacks.
      loop: returns what their loop keeps, or None.
    """

    def __init__(
        self, callbacks: Sequence[Any], loop: Callable[[], LoopState | None]
    ) -> None:
        self.callbacks = callbacks
        self.loop = loop
        # Of a user's callback only attributes that differ from this are saved. The
        # state attributes of Keras's own callbacks are always saved.
        self._base: list[dict[str, Any]] = []
        # They set the state of before and after `on_train_begin` again.
        self.restore_construction: Callable[..., None] = lambda: None
        self._restore_begin: Callable[..., None] = lambda kept: None
        self._frozen: tuple[list[Entry], LoopState | None] | None = None
        self.is_over: bool = False  # whether they had `on_train_end`
        self._at_end: list[Entry] = []  # what a frozen part was after its last event
        # By the place of a callback: the attributes with which it goes on.
        self._restored: dict[int, list[str]] = {}
        self.identify()

    def identify(self) -> None:
        """Find out who the callbacks are, before training changes any value."""
        for callback in self.callbacks:
            identity.of(callback)

    def note_construction(self) -> None:
        """Note all callbacks as they are before `on_train_begin`."""
        self.identify()
        self.restore_construction = attributes.restorer_of(self.callbacks)

    def begin(self) -> None:
        """Take for state what callbacks change from here on, after `on_train_begin`."""
        self._restored = {}
        self._restore_begin = attributes.restorer_of(self.callbacks)
        self._base = [
            {} if attributes.is_stock(c) else copy.deepcopy(attributes.storable(c))
            for c in self.callbacks
        ]

    def freeze(self) -> None:
        """Keep the state as it is: an uninterrupted job has no later events."""
        self._frozen = copy.deepcopy(self.state())

    def note_end(self) -> None:
        """Note that callbacks had `on_train_end`; only evaluations may follow."""
        self.is_over = True
        if self._frozen is not None:
            self._at_end = copy.deepcopy(self._entries())

    def add_later_events(self) -> None:
        """Add to a frozen state what an evaluation after the run has changed."""
        if self._frozen is None or not self._at_end:
            return
        before, self._at_end = self._at_end, copy.deepcopy(self._entries())
        for entry, old, new in zip(self._frozen[0], before, self._at_end, strict=True):
            for name, value in new.state.items():
                was = old.state.get(name)
                entry.state[name] = _with_change(entry.state.get(name, was), was, value)

    def state(self) -> tuple[list[Entry], LoopState | None]:
        """Return the present state of the callbacks, and of their loop."""
        return self._frozen or (self._entries(), self.loop())

    def _entries(self) -> list[Entry]:
        """Return what each callback has changed since the run began."""
        return [
            Entry(
                identity.of(callback),
                {
                    name: getattr(callback, name)
                    for name, now in attributes.storable(callback).items()
                    if name not in base or not attributes.are_equal(now, base[name])
                },
            )
            for callback, base in zip(self.callbacks, self._base, strict=True)
        ]

    def restore(self, restored: RestoredState) -> None:
        """Give the callbacks their states; the rest is as after `on_train_begin`."""
        entries = {
            index: entry
            for index, callback in enumerate(self.callbacks)
            if (entry := restored.entry_of(callback)) is not None
        }
        self._restore_begin({index: e.state for index, e in entries.items()})
        for index, entry in entries.items():
            callback = self.callbacks[index]
            names = self._restored[index] = give_state(callback, entry, restored)
            # What is restored is saved again with the next checkpoint.
            for name in names:
                self._base[index].pop(name, None)

    def restorer(self) -> Callable[[], None]:
        """Return a function that sets restored attributes back to the present."""
        restored = [
            (self.callbacks[index], name)
            for index, names in self._restored.items()
            for name in names
        ]
        now = [(c, name, copy.deepcopy(getattr(c, name))) for c, name in restored]

        def undo() -> None:
            for callback, name, value in now:
                attributes.set_attribute(callback, name, value, is_as_written=True)

        return undo


def _with_change(saved: object, before: object, now: object) -> Any:
    """Return a value with the change from `before` to `now`, where that is clear."""
    if attributes.are_equal(*(attributes.encoded(value) for value in (saved, before))):
        return now
    if type(saved) is type(before) is type(now) is int:
        return saved + now - before
    if isinstance(saved, list) and isinstance(now, list) and isinstance(before, list):
        return saved + now[len(before) :] if now[: len(before)] == before else saved
    return saved
