"""When the state of callbacks is saved and restored in a training run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hookbridge.adapters import callback_state

if TYPE_CHECKING:
    from hookbridge.adapters.train_run import TrainRun


class StateKeeper:
    """Follows the saver of a session.

    It is the saver in the collection `SAVERS`, which the loop's checkpoint hook and
    the restoring of a session use. Without one there is nothing to do.

    Args:
      run: the training run.
    """

    def __init__(self, run: TrainRun) -> None:
        self._run = run
        self._state: callback_state.CallbackState | None = None
        self._saver: Any = None
        self._stop: Callable[[], None] | None = None
        self._late: list[str] = []

    def begin(self) -> None:
        """After `on_train_begin`: restores what is there and follows the saver."""
        import tensorflow as tf

        savers = self._run.graph.get_collection(tf.compat.v1.GraphKeys.SAVERS)
        if not savers:
            return
        run = self._run
        self._state = callback_state.CallbackState(run.called, run.loop_state)
        self._saver = savers[0]
        self.restore()
        self._stop = callback_state.watch(self._saver, self._saved)

    def restore(self) -> None:
        """Restores the state that belongs to the checkpoint of the session."""
        if self._state is not None and self._saver.last_checkpoints:
            prefix = self._saver.last_checkpoints[-1]
            found = self._state.restore(prefix, self._run.step)
            self._run.set_loop_state(found)

    def _saved(self, prefix: str) -> None:
        # The saver's hook may come before the callbacks of the same step; the state
        # that belongs to the step is the one after them.
        if self._run.in_step:
            self._late.append(prefix)
        elif self._state is not None:
            self._state.save(prefix, self._run.step)

    def step_is_over(self) -> None:
        """All callbacks had their events of a step."""
        if self._late and self._state is not None:
            for prefix in self._late:
                self._state.save(prefix, self._run.step)
            self._late.clear()

    def end(self) -> None:
        """Lets the saver go."""
        if self._stop is not None:
            self._stop()
