"""When a checkpoint and the state beside it are taken: one rule for all loops.

Both are of the end of a step, with all that callbacks did and set by then. A run that
ends early, within an epoch or before its last one, delivers the end of the epoch and of
the training to callbacks; a later run goes on as if it had not. So both stay as they
were before that end, and so does all that callbacks set in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from hookbridge.adapters.state import rewriting


class Ending(NamedTuple):
    """How a training run ends."""

    in_epoch: bool  # an epoch has begun and has not had all its steps
    epochs_left: bool  # further epochs were asked for
    is_of_data: bool  # the data has ended, and with it the epoch
    by_callback: bool  # a callback has set `stop_training`

    @property
    def is_early(self) -> bool:
        """Whether a later run goes on as if this one had not ended."""
        is_last = self.is_of_data or self.by_callback
        return (self.in_epoch or self.epochs_left) and not is_last


# Calls what writes the state beside a checkpoint, after the checkpoint.
InOrder = Callable[[Callable[[], None]], None]


def at_once(write: Callable[[], None]) -> None:
    """The order where a checkpoint is written before its writer returns."""
    write()


class Checkpoint:
    """A checkpoint of the present step, to be written again after its events.

    `mark` returns what is equal as long as callbacks set no variable; `write` writes
    the checkpoint. `session` is the one that it was saved in, None if that is in
    another process. `in_order` is called with what writes the state beside it, and does
    so after the checkpoint, whose files may still be written in a thread.
    """

    def __init__(
        self,
        prefix: str,
        session: Any = None,
        mark: Callable[[], Any] = lambda: None,
        write: Callable[[], Any] = lambda: None,
        in_order: InOrder = at_once,
    ) -> None:
        self.prefix = prefix  # its path without suffix
        self.session = session
        self._mark = mark
        self._written = mark()
        self._write = write
        self.in_order = in_order
        self._is_rewritten = False

    @property
    def is_current(self) -> bool:
        """Whether it has what callbacks have set."""
        return bool(self._mark() == self._written)

    def rewrite_if_changed(self) -> None:
        """Writes it once more if callbacks have set variables since.

        Until `finish`, after its state, a restart finds the files of before.
        """
        if not self.is_current:
            self._is_rewritten = True
            self.in_order(functools.partial(rewriting.begin, self.prefix))
            self._write()
            self._written = self._mark()

    def finish(self) -> None:
        """The state that belongs to what `rewrite_if_changed` wrote is written."""
        if self._is_rewritten:
            self._is_rewritten = False
            self.in_order(functools.partial(rewriting.end, self.prefix))
