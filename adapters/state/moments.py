"""When a checkpoint and the state beside it are taken: one rule for all loops.

Both are of the end of a step, with all that callbacks did and set by then. A run that
ends early, within an epoch or before its last one, delivers the end of the epoch and of
the training to callbacks; a later run goes on as if it had not. So both stay as they
were before that end, and so does all that callbacks set in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hookbridge.adapters.state import rewriting
from hookbridge.adapters.state.write_order import WriteOrder


def is_early_end(
    *, in_epoch: bool, epochs_left: bool, is_of_data: bool, by_callback: bool
) -> bool:
    """Return whether a later run goes on as if this training had not ended.

    Args:
      in_epoch: whether an epoch has begun and has not had all its steps.
      epochs_left: whether further epochs were asked for.
      is_of_data: whether the data has ended, and with it the epoch.
      by_callback: whether a callback has set `stop_training`.
    """
    return (in_epoch or epochs_left) and not (is_of_data or by_callback)


class Checkpoint:
    """A checkpoint of the present step, to be written again after its events.

    Args:
      prefix: its path without suffix.
      session: the one that it was saved in; None if that is in another process.
      mark: returns a value that changes whenever a callback sets a variable.
      write: writes the checkpoint with the present values.
      order: in which order checkpoint and state are written; by default at once.
    """

    def __init__(
        self,
        prefix: str,
        session: object = None,
        mark: Callable[[], Any] = lambda: None,
        write: Callable[[], Any] = lambda: None,
        order: WriteOrder | None = None,
    ) -> None:
        self.prefix = prefix
        self.session = session
        self._mark = mark
        self._written = mark()
        self._write = write
        self.order: WriteOrder = order or WriteOrder(prefix)
        self._is_rewritten = False

    @property
    def is_current(self) -> bool:
        """Return whether it has what callbacks have set."""
        return bool(self._mark() == self._written)

    def rewrite_if_changed(self) -> None:
        """Write it again if callbacks have set variables since.

        Until `finish`, after its state, a restart finds the files of before.
        """
        if self.is_current:
            return
        if not self.order.is_held:
            self._is_rewritten = True
            self.order.then(functools.partial(rewriting.begin, self.prefix))
        self._write()
        self._written = self._mark()

    def seal(self) -> None:
        """Leave it as it is: it is not written again, and refers to no session."""
        self.session = None
        self._mark = self._write = lambda: None
        self._written = None

    def finish(self) -> None:
        """Write what has waited until checkpoint and state are of one moment."""
        self.order.release()
        if self._is_rewritten:
            self._is_rewritten = False
            self.order.then(functools.partial(rewriting.end, self.prefix))
