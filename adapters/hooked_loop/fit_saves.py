"""What a `fit` has on the disk: the state of its callbacks, and beside which files."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from hookbridge.adapters.hooked_loop.fit_backups import FitBackups
from hookbridge.adapters.hooked_loop.fit_loop_state import FitLoopState, parse
from hookbridge.adapters.hooked_loop.host import GraphPart
from hookbridge.adapters.keras_model.optimizers import steps_counted
from hookbridge.adapters.state.files import StateFiles
from hookbridge.adapters.state.moments import Checkpoint
from hookbridge.adapters.state.parts import Part
from hookbridge.adapters.state.write_order import WriteOrder
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import KerasModel

_RESTORED = Fact[tuple[str, int]]("model", "checkpoint, and its step")
# Directory -> what the last `fit` saves that began to save there.
_NEWEST: weakref.WeakValueDictionary[str, FitSaves] = weakref.WeakValueDictionary()


def note_restored(model: KerasModel, prefix: str) -> None:
    """Remember the checkpoint of a model, for the callbacks of its next `fit`."""
    _RESTORED.put(model, (prefix, steps_counted(model)))


def checkpoint_of(
    graph: GraphPart,
    session: Any,
    prefix: str,
    write: Callable[[], Any],
    order: WriteOrder | None = None,
) -> Checkpoint:
    """Return a checkpoint of the present values of a graph.

    `write` writes it once more.

    See `Checkpoint` for `order`.
    """

    def write_again() -> None:
        with graph.calling_hooks():
            write()

    return Checkpoint(prefix, session, graph.values, write_again, order)


def restored_from(model: KerasModel, folder: str) -> str | None:
    """Return the checkpoint that a model was restored from.

    None if it is not in a folder.

    None too if the model has been trained since.
    """
    prefix, step = _RESTORED.get(model) or ("", -1)
    if not prefix or steps_counted(model) != step:
        return None
    return prefix if os.path.abspath(os.path.dirname(prefix)) == folder else None


class FitSaves:
    """The state of the callbacks of one `fit`, beside its checkpoints and backups.

    Here is what is read and written; `FitStates` calls it and knows when.

    Args:
      folder: where the hook writes its checkpoints, as an absolute path.
      run_number: that of the run; several hooks may save in one folder.
      graph: the graph of the run.
      guests: the callbacks with a state; without any, there are only checkpoints.
      backups: the backups of the callbacks.
      loop: returns what the loop keeps, for a checkpoint at a global step.
    """

    def __init__(
        self,
        folder: str,
        run_number: int,
        graph: GraphPart,
        *,
        guests: Sequence[Any],
        backups: FitBackups,
        loop: Callable[[int], dict[str, Any]],
    ) -> None:
        _NEWEST[folder] = self
        self._run_number = run_number
        self._folder = folder
        self._graph: GraphPart | None = graph  # None after the end
        self.guests = guests
        self._backups = backups
        self._loop = loop
        self._files = StateFiles()
        self._part: Part | None = None  # None before callbacks have begun
        self._checkpoint: Checkpoint | None = None  # that of the last step, if any
        self.step: int = 0  # of the state that was written last
        self._in_step = False  # whether callbacks lack events of the present step
        self.is_frozen: bool = False

    @property
    def is_newest(self) -> bool:
        """Return whether no later `fit` saves in its folder."""
        newest = _NEWEST.get(self._folder)
        return newest is not None and newest._run_number == self._run_number

    @property
    def has_checkpoint(self) -> bool:
        """Return whether the last step has a checkpoint."""
        return self._checkpoint is not None

    # -- before the first step -------------------------------------------------------

    def restore(self, checkpoint: str | None) -> Sequence[FitLoopState]:
        """Give callbacks the state of their backup or of a checkpoint, if any.

        Returns what the loops of that run have saved.
        """
        self._part = self._files.add(self.guests, lambda: self._loop(self.step))
        prefix = self._backups.restored(self._files) or checkpoint
        saved = None if prefix is None else self._files.read(prefix, parse)
        self._part.begin()
        if saved is None:
            return ()
        self._part.restore(saved)
        return saved.loops

    def snapshot(self) -> Callable[[], None]:
        """See `Part.snapshot`; nothing goes back where no callback has a state."""
        return (lambda: None) if self._part is None else self._part.snapshot()

    # -- checkpoints -----------------------------------------------------------------

    def keep(self, checkpoint: Checkpoint, step: int) -> None:
        """Write the state beside a checkpoint, which may not be written yet."""
        self._checkpoint, self.step = checkpoint, step
        self.write_state()

    def note_written(self, checkpoint: Checkpoint, step: int) -> None:
        """Note that a checkpoint was written."""
        is_known = (
            self._checkpoint is not None
            and self._checkpoint.prefix == checkpoint.prefix
        )
        if not is_known:
            self.keep(checkpoint, step)
        self._checkpoint = checkpoint

    def write_state(self) -> None:
        """Write the present state beside the checkpoint of the last step, if any."""
        if self._checkpoint is not None and self._part is not None:
            write = self._files.writer(
                self._checkpoint.prefix, self.step, in_step=self._in_step
            )
            self._checkpoint.write_state(write)

    def rewrite(self) -> None:
        """Write checkpoint and state of the last step as they are now, if it saved."""
        if self._checkpoint is not None and not self.is_frozen:
            self._checkpoint.rewrite_if_changed()
        self.write_state()
        if self._checkpoint is not None:
            self._checkpoint.finish()

    def begin_step(self) -> None:
        """Begin a step: what the last one has saved is final."""
        self.end_step()
        self.rewrite()
        self._checkpoint = None
        self.save_backups(in_epoch=True)
        self._in_step = True

    def end_step(self) -> None:
        """Callbacks have had all events of the present step."""
        self._in_step = False

    def freeze(self) -> None:
        """Leave all as it is: an uninterrupted run has none of the later events."""
        if self._part is not None:
            self._part.freeze()
        self.is_frozen = True

    def end(self) -> None:
        """Note that the `fit` is over: its last checkpoint is not written again."""
        self.rewrite()
        self._graph = None
        if self._checkpoint is not None:
            self._checkpoint = Checkpoint(self._checkpoint.prefix)

    def rescue(self) -> None:
        """Write the state once more after an error, if the checkpoint is current."""
        self._rescue_state()
        if self._checkpoint is not None:
            self._checkpoint.release()

    def _rescue_state(self) -> None:
        """Write the state of the newest save if the model still has it."""
        if not self.is_newest or self._checkpoint is None:
            return
        # Garbage may be collected anywhere, also where nothing can be read.
        if self._graph is None or not self._graph.can_be_read:
            return
        try:
            is_current = self._checkpoint.is_current
        except RuntimeError:  # `clear_session` has closed the session of a v1 graph
            return
        if is_current:
            self.write_state()

    # -- backups ---------------------------------------------------------------------

    def save_backups(self, *, in_epoch: bool) -> None:
        """Write the state beside new backups, within an epoch or at its end."""
        new = self._backups.new(in_epoch=in_epoch)
        if new and self._part is not None and self._graph is not None:
            self.step = self._graph.step_number
            for backup in new:
                self._files.save(backup.prefix, self.step)
