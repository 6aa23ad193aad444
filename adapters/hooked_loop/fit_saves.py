"""What a `fit` has on the disk: the state of its callbacks, and beside which files."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from hookbridge.adapters.hooked_loop.host import GraphPart
from hookbridge.adapters.keras_model.optimizers import steps_counted
from hookbridge.adapters.state.backups import backups_of
from hookbridge.adapters.state.keeper import StateKeeper
from hookbridge.adapters.state.loop_state import LoopState
from hookbridge.adapters.state.moments import Checkpoint
from hookbridge.adapters.state.parts import Part
from hookbridge.adapters.state.save_listeners import Save
from hookbridge.adapters.state.write_order import WriteOrder
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import KerasModel

_RESTORED = Fact[tuple[str, int]]("model", "checkpoint, and its step")
# Directory -> what the last `fit` saves that began to save there.
_NEWEST: weakref.WeakValueDictionary[str, FitSaves] = weakref.WeakValueDictionary()


def note_restored(model: KerasModel, prefix: str) -> None:
    """Remember the checkpoint of a model, for the callbacks of its next `fit`.

    Args:
      model: the model that was restored.
      prefix: the path of the checkpoint, without the ends of its files.
    """
    _RESTORED.put(model, (prefix, steps_counted(model)))


def restored_from(model: KerasModel, folder: str) -> str | None:
    """Return the checkpoint in `folder` that a model was restored from, or None.

    It is None too if the model has been trained since.
    """
    prefix, step = _RESTORED.get(model) or ("", -1)
    is_there = os.path.abspath(os.path.dirname(prefix)) == folder
    return prefix if is_there and steps_counted(model) == step else None


class FitSaves:
    """The state of the callbacks of one `fit`, beside its checkpoints and backups.

    Here is what is read and written; `FitStates` calls it and knows when.

    Args:
      folder: where the hook writes its checkpoints, as an absolute path.
      run_number: that of the run; several hooks may save in one folder.
      graph: the graph of the run.
      guests: the callbacks with a state; without any, there are only checkpoints.
      loop: returns what the loop keeps, for a checkpoint at a global step.
    """

    def __init__(
        self,
        folder: str,
        run_number: int,
        graph: GraphPart,
        *,
        guests: Sequence[Any],
        loop: Callable[[int], LoopState],
    ) -> None:
        _NEWEST[folder] = self
        self._run_number = run_number
        self._folder = folder
        self._graph: Any = graph  # None after the end
        self._backups = backups_of(guests)
        self.keeper = StateKeeper(lambda: (self.step, self.in_step))
        self.part: Part = Part(guests, lambda: loop(self.step))
        self.step: int = 0  # of the last save
        self.in_step: bool = False  # whether callbacks lack events of the present step
        self.is_frozen: bool = False

    @property
    def is_newest(self) -> bool:
        """Return whether no later `fit` saves in its folder."""
        newest = _NEWEST.get(self._folder)
        return newest is not None and newest._run_number == self._run_number

    # -- before the first step -------------------------------------------------------

    def restore(self, prefix: str | None) -> Sequence[LoopState]:
        """Give callbacks the state of a backup or checkpoint, if any.

        Args:
          prefix: the path of the backup or checkpoint, or None.

        Returns:
          What the loops of the run that wrote it have saved.
        """
        self.keeper.files.parts = [self.part]
        restored = None if prefix is None else self.keeper.files.read(prefix)
        self.part.begin()
        if restored is None:
            return ()
        self.part.restore(restored)
        return restored.document.loops

    # -- checkpoints -----------------------------------------------------------------

    def before_save(self, prefix: str, step: int, order: WriteOrder) -> None:
        """Write the state beside a checkpoint that is about to be written."""
        self.step = step
        self.keeper.write_state(Checkpoint(prefix, order=order))

    def note(self, save: Save) -> None:
        """Note a checkpoint that was written, to be written again after its step."""
        graph = self._graph

        def write() -> None:
            with graph.calling_hooks():
                save.write()

        self.keeper.note(
            Checkpoint(save.prefix, save.session, graph.values, write, save.order)
        )

    def begin_step(self) -> None:
        """Begin a step: what the last one has saved is final."""
        self.in_step = False
        self.keeper.settle()
        self.keeper.checkpoints = []
        self.save_backups(in_epoch=True)
        self.in_step = True

    def freeze(self) -> None:
        """Leave all as it is: an uninterrupted run has none of the later events."""
        self.part.freeze()
        self.keeper.seal()
        self.is_frozen = True

    def end(self) -> None:
        """Note that the `fit` is over: its last checkpoint is not written again."""
        self.keeper.settle()
        self.keeper.seal()
        self._graph = None

    def rescue(self) -> None:
        """Write the state again after an error, if the checkpoint is current."""
        # Garbage may be collected anywhere, also where nothing can be read.
        checkpoints = self.keeper.checkpoints
        if self.is_newest and self._graph.can_be_read:
            try:
                are_current = all(checkpoint.is_current for checkpoint in checkpoints)
            except RuntimeError:  # `clear_session` closed the session of a v1 graph
                are_current = False
            if are_current:
                self.keeper.write_state(*checkpoints)
        for checkpoint in checkpoints:
            checkpoint.order.release()

    # -- backups ---------------------------------------------------------------------

    def save_backups(self, *, in_epoch: bool) -> None:
        """Write the state beside new backups, within an epoch or at its end."""
        backups = [b for b in self._backups if b.is_in_epoch or not in_epoch]
        new = [Checkpoint(backup.prefix) for backup in backups if backup.is_new()]
        if new:
            self.step = self._graph.step_number
            self.keeper.write_state(*new)
