"""The state that was found beside a checkpoint, and how callbacks get it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from hookbridge.adapters.state import attributes, identity
from hookbridge.adapters.state.document import Document, Entry
from hookbridge.adapters.state.loop_state import epoch_of
from hookbridge.adapters.state.matching import Matches, match
from hookbridge.adapters.state.restart_line import log_restart
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Callback

# Where the last run of a callback in this process ended: the directory and the step.
_ENDED = Fact[tuple[str, int]]("guest", "where its last run ended")


class RestoredState:
    """The state that was found beside a checkpoint."""

    def __init__(
        self,
        document: Document,
        callbacks: Sequence[Any],
        path: str,
        *,
        is_of_chief: bool = False,
    ) -> None:
        self.document = document
        self.path = path
        # Its directory and the step.
        self.at: tuple[str, int] = (os.path.dirname(path), document.step)
        self._callbacks = list(callbacks)
        self._matches: Matches = match(
            [identity.of(c) for c in callbacks],
            [e.identity for e in document.entries],
            # A worker writes to files of its own, beside the chief's.
            identity.DECISIVE - {"filepath"} if is_of_chief else identity.DECISIVE,
        )

    def entry_of(self, callback: Callback) -> Entry | None:
        """Return the state of a callback, or None if it has none here."""
        for index, number in self._matches.pairs.items():
            if self._callbacks[index] is callback:
                return self.document.entries[number]
        return None

    def report(self, *, is_own: bool) -> None:
        """Log where the run goes on, with whose state; who is missing if `is_own`."""
        pairs, missing, unclear = self._matches
        entries = self.document.entries
        for reason, places in unclear:
            if not any(entries[n].state for n in places):
                continue  # nothing is lost
            logging.warning(
                "hookbridge: %s (in %s). A callback is identified by the strings that "
                "it is constructed with, or by its attribute `state_key`. Set a "
                "`state_key` that stays the same.",
                reason,
                self.path,
            )
        states = [entries[n] for n in missing if entries[n].state]
        if states and is_own:
            logging.warning(
                "hookbridge: %s has the state of %s, which is no longer among the "
                "callbacks; it is ignored.",
                self.path,
                ", ".join(dict.fromkeys(str(e.identity) for e in states[:20])),
            )
        going_on: list[str] = []
        starting_over: list[str] = []
        for index, callback in enumerate(self._callbacks):
            name = str(identity.of(callback))
            if index not in pairs:
                starting_over.append(name)
            elif entries[pairs[index]].state:
                going_on.append(name)
        epoch = epoch_of(self.document.loops)
        log_restart(self.path, self.document.step, epoch, going_on, starting_over)


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
    return (
        attribute in now
        and attribute in before
        and now[attribute] != before[attribute]
        and not isinstance(now[attribute], list)
    )


def give_state(callback: Callback, entry: Entry, restored: RestoredState) -> list[str]:
    """Set the attributes of a callback; return what its next state needs too.

    Args:
      callback: the callback that goes on.
      entry: its state.
      restored: where the state was found.
    """
    name, state = entry.identity.kind, entry.state
    has_it = _ENDED.get(callback) == restored.at
    now, before = identity.of(callback).values, entry.identity.values
    names = []
    for attribute, value in state.items():
        if _was_reconfigured(attribute, now, before):
            continue  # the user's new choice
        # An object that has what the file holds may have changed it since, in
        # `on_train_begin`. Only Keras's own state began again there.
        if not has_it or attribute in attributes.state_attributes_of(callback):
            try:
                if attribute == "best":
                    attributes.find_direction(callback)
                attributes.set_attribute(
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
                    restored.path,
                    type(e).__name__,
                    e,
                )
                continue
        names.append(attribute)
    return names
