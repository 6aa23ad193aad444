"""The keeper of callbacks' state: what is written of it, and who writes last.

`SessionStates` and `FitStates` know when, and each calls its keeper. `settle` writes
last: the checkpoint again, if callbacks have set variables, and after it the state. In
a session `SessionStates._write_late` calls it. In `fit`, `FitStates` calls it after an
epoch and before an early end, and `FitSaves` before the next step and at the end.
If a thread writes, both wait for `InThread.release`, which `settle` calls.
"""

from __future__ import annotations

from collections.abc import Callable

from hookbridge.adapters.state.files import StateFiles
from hookbridge.adapters.state.moments import Checkpoint
from hookbridge.ground.protocols import Session


class StateKeeper:
    """Writes the checkpoints of a step and the state beside them, of one moment.

    The state is written before its checkpoint, so that no checkpoint is without one if
    the process is killed. Once callbacks have had all events of the step, both are
    written again: the checkpoint only if callbacks have set variables.

    Args:
      now: returns the global step that callbacks know, and whether they have not had
        all its events yet.
      task: see `StateFiles`.
    """

    def __init__(self, now: Callable[[], tuple[int, bool]], task: str = "") -> None:
        self.files: StateFiles = StateFiles(task)
        self._now = now
        self._step = -1
        # Of the last step that has some, until it is over for good.
        self.checkpoints: list[Checkpoint] = []
        # Those that were written and whose state has to wait, which are not noted yet.
        self.waiting: list[Checkpoint] = []

    def note(self, *checkpoints: Checkpoint) -> None:
        """Note checkpoints that were written; those of earlier steps are final."""
        new = {checkpoint.prefix for checkpoint in checkpoints}
        others = [
            other for other in self.checkpoints_of_step() if other.prefix not in new
        ]
        self._step, _ = self._now()
        self.checkpoints = [*checkpoints, *others]

    def checkpoints_of_step(self) -> list[Checkpoint]:
        """Return the checkpoints of the present step."""
        step, _ = self._now()
        return self.checkpoints if step == self._step else []

    def move_step(self, before: int, step: int) -> None:
        """Note that others have moved the step since the last one of this process.

        Args:
          before: the step after this process's last one.
          step: where it is now.
        """
        if self._step == before:
            self._step = step

    def write_state(self, *checkpoints: Checkpoint) -> None:
        """Write the present state beside checkpoints, which may not exist yet.

        Args:
          *checkpoints: where it is written, and in which order.
        """
        if not self.files.parts:
            return  # no callback has a state
        step, in_step = self._now()
        for checkpoint in checkpoints:
            write = self.files.writer(checkpoint.prefix, step, in_step=in_step)
            checkpoint.order.write_state(write)

    def settle(self) -> None:
        """Write the checkpoints of the step with what callbacks have set, and states.

        Until both are written a restart finds the files of before.
        """
        for checkpoint in self.checkpoints:
            checkpoint.rewrite_if_changed()
        self.write_state(*self.checkpoints)
        for checkpoint in self.checkpoints:
            checkpoint.finish()

    def seal(self, present: Session | None = None) -> None:
        """Write no checkpoint again whose session is not the present one."""
        for checkpoint in [*self.checkpoints, *self.waiting]:
            if present is None or checkpoint.session is not present:
                checkpoint.seal()
