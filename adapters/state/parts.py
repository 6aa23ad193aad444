"""Callbacks whose state is kept, and what was found beside a checkpoint for them."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from hookbridge.adapters.state import attributes, identity
from hookbridge.adapters.state.document import Document, Entry
from hookbridge.adapters.state.loop_state import LoopState, epoch_of
from hookbridge.adapters.state.matching import Matches, match
from hookbridge.adapters.state.restart_line import log_restart
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Callback

# Where the last run of a callback in this process ended: the directory and the step.
_ENDED = Fact[tuple[str, int]]("guest", "where its last run ended")


class Part:
    """Callbacks whose events come together; `loop` returns what their loop keeps."""

    def __init__(
        self, callbacks: Sequence[Any], loop: Callable[[], LoopState | None]
    ) -> None:
        self.callbacks = callbacks
        self.loop = loop
        # Of a user's callback only attributes that differ from this are saved. The
        # counters of Keras's own callbacks are always saved.
        self._base: list[dict[str, Any]] = []
        # They set the state of before and after `on_train_begin` again.
        self.go_back_to_construction: Callable[..., None] = lambda: None
        self._go_back_to_begin: Callable[..., None] = lambda kept: None
        self._frozen: tuple[list[Entry], LoopState | None] | None = None
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
        self.go_back_to_construction = attributes.remembered(self.callbacks)

    def begin(self) -> None:
        """Begin after `on_train_begin`: what changes from here on is state."""
        self._restored = {}
        self._go_back_to_begin = attributes.remembered(self.callbacks)
        self._base = [
            {} if attributes.is_stock(c) else copy.deepcopy(attributes.storable(c))
            for c in self.callbacks
        ]

    def freeze(self) -> None:
        """Keep the state as it is: an uninterrupted job has no later events."""
        self._frozen = copy.deepcopy(self.state())

    def note_end(self) -> None:
        """End after `on_train_end`; only evaluations may follow."""
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
                    if name not in base or not attributes.same(now, base[name])
                },
            )
            for callback, base in zip(self.callbacks, self._base, strict=True)
        ]

    def restore(self, saved: Saved) -> None:
        """Give the callbacks their states; the rest is as after `on_train_begin`."""
        entries = {
            index: entry
            for index, callback in enumerate(self.callbacks)
            if (entry := saved.entry_of(callback)) is not None
        }
        self._go_back_to_begin({index: e.state for index, e in entries.items()})
        for index, entry in entries.items():
            callback = self.callbacks[index]
            names = self._restored[index] = _put(callback, entry, saved)
            # What is restored is saved again with the next checkpoint.
            for name in names:
                self._base[index].pop(name, None)

    def snapshot(self) -> Callable[[], None]:
        """Return a function that sets restored attributes back to the present."""
        now = []
        for index, names in self._restored.items():
            callback = self.callbacks[index]
            for name in names:
                now.append((callback, name, copy.deepcopy(getattr(callback, name))))

        def go_back() -> None:
            for callback, name, value in now:
                attributes.put(callback, name, value, is_as_written=True)

        return go_back


class Saved:
    """The state that was found beside a checkpoint."""

    def __init__(
        self,
        file: Document,
        callbacks: Sequence[Any],
        path: str,
        *,
        is_of_chief: bool = False,
    ) -> None:
        self.step: int = file.step
        self.is_in_step: bool = file.is_in_step
        self._entries = file.entries
        self.loops: Sequence[LoopState] = file.loops
        self.path = path
        # Its directory and the step.
        self.at: tuple[str, int] = (os.path.dirname(path), file.step)
        self._callbacks = list(callbacks)
        self._matches: Matches = match(
            [identity.of(c) for c in callbacks],
            [e.identity for e in self._entries],
            # A worker writes to files of its own, beside the chief's.
            identity.DECISIVE - {"filepath"} if is_of_chief else identity.DECISIVE,
        )

    def entry_of(self, callback: Callback) -> Entry | None:
        """Return the state of a callback, or None if it has none here."""
        for index, known in enumerate(self._callbacks):
            if known is callback and index in self._matches.pairs:
                return self._entries[self._matches.pairs[index]]
        return None

    def report(self, *, is_own: bool) -> None:
        """Log where the run goes on, with whose state; who is missing if `is_own`."""
        pairs, missing, unclear = self._matches
        for reason, places in unclear:
            if not any(self._entries[n].state for n in places):
                continue  # nothing is lost
            logging.warning(
                "hookbridge: %s (in %s). A callback is identified by the texts that "
                "it is constructed with, or by its attribute `state_key`. Set a "
                "`state_key` that stays the same.",
                reason,
                self.path,
            )
        states = [self._entries[n] for n in missing if self._entries[n].state]
        if states and is_own:
            logging.warning(
                "hookbridge: %s has the state of %s, which is no longer among the "
                "callbacks; it is ignored.",
                self.path,
                ", ".join(dict.fromkeys(str(e.identity) for e in states[:20])),
            )
        going_on: list[str] = []
        anew: list[str] = []
        for index, callback in enumerate(self._callbacks):
            name = str(identity.of(callback))
            if index not in pairs:
                anew.append(name)
            elif self._entries[pairs[index]].state:
                going_on.append(name)
        log_restart(self.path, self.step, epoch_of(self.loops), going_on, anew)


def _with_change(saved: object, before: object, now: object) -> Any:
    """Return a value with the change from `before` to `now`, where that is clear."""
    if attributes.same(*(attributes.encoded(value) for value in (saved, before))):
        return now
    if type(saved) is type(before) is type(now) is int:
        return saved + now - before
    if isinstance(saved, list) and isinstance(now, list) and isinstance(before, list):
        return saved + now[len(before) :] if now[: len(before)] == before else saved
    return saved


def note_ended(callbacks: Sequence[Any], prefix: str, step: int) -> None:
    """Note that callbacks already have the state that their run has saved.

    Args:
      callbacks: the callbacks of the run.
      prefix: the path of the run's last checkpoint, whose folder is noted.
      step: the global step of that checkpoint.
    """
    for callback in callbacks:
        _ENDED.put(callback, (os.path.dirname(prefix), step))


def _was_reconfigured(
    attribute: str, now: Mapping[str, Any], before: Mapping[str, Any]
) -> bool:
    """Return whether a callback was constructed with another value of an attribute.

    `now` and `before` are what it and the callback of the state were constructed with.
    A list is the digest of something that may differ by itself, as the time does.
    """
    if attribute not in now or attribute not in before:
        return False
    return now[attribute] != before[attribute] and not isinstance(now[attribute], list)


def _put(callback: Callback, entry: Entry, saved: Saved) -> list[str]:
    """Set the attributes of a callback; return what its next state needs too."""
    name, state = entry.identity.kind, entry.state
    has_it = _ENDED.get(callback) == saved.at
    now, before = identity.of(callback).values, entry.identity.values
    names = []
    for attribute, value in state.items():
        if _was_reconfigured(attribute, now, before):
            continue  # the user's new choice
        # An object that has what the file holds may have changed it since, in
        # `on_train_begin`. Only Keras's own counters began anew there.
        if not has_it or attribute in attributes.counters_of(callback):
            try:
                if attribute == "best":
                    attributes.find_direction(callback)
                attributes.put(
                    callback,
                    attribute,
                    value,
                    is_as_written=entry.is_as_written,
                )
            except Exception as e:  # a property of a user's class may raise
                logging.warning(
                    "hookbridge: `%s.%s` cannot be restored from %s (%s: %s). It "
                    "starts over; the other attributes are restored.",
                    name,
                    attribute,
                    saved.path,
                    type(e).__name__,
                    e,
                )
                continue
        names.append(attribute)
    return names
