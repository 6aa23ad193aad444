"""The state of callbacks, saved beside each checkpoint and restored with it."""

from __future__ import annotations

import os
from collections.abc import Callable

import tensorflow as tf
from absl import logging

from hookbridge.adapters.state import document, loop_state, rewriting, storage
from hookbridge.adapters.state.document import Document
from hookbridge.adapters.state.parts import Part
from hookbridge.adapters.state.restart_line import log_without_state
from hookbridge.adapters.state.restored_state import RestoredState, note_ended
from hookbridge.adapters.state.write_order import wait_for_writes
from hookbridge.ground.processes.tf_config import task_of


class StateFiles:
    """Keeps the state of callbacks together with checkpoints.

    `model.ckpt-120.hookbridge.json` beside `model.ckpt-120.index` has, for each
    callback, who it is and the attributes that changed since `on_train_begin`: numbers
    and strings. Arrays, such as best weights, are in an `.npz` file with their digest
    in its name, so that both belong together whenever the process is killed.

    Args:
      task: such as "worker-1"; empty for the process that writes the checkpoints.
    """

    def __init__(self, task: str = "") -> None:
        self._name = storage.name_of(task)
        # All are there before the first of their callbacks is restored.
        self.parts: list[Part] = []

    def writer(self, prefix: str, step: int, *, in_step: bool) -> Callable[[], None]:
        """Return a function that writes the state, as it is now, beside a checkpoint.

        Args:
          prefix: the path of the checkpoint, which may not exist yet.
          step: the global step.
          in_step: whether callbacks have not had all events of the step yet. The state
            is written again after them, unless the process ends before.
        """
        for part in self.parts:
            if part.is_over:
                note_ended(part.callbacks, prefix, step)
        states = [part.state() for part in self.parts]
        entries = [entry for of_part, _ in states for entry in of_part]
        loops = [loop.document() for _, loop in states if loop is not None]
        return document.writer(
            prefix, self._name, Document(step, entries, loops, in_step)
        )

    def remove_unfinished(self, folder: str) -> None:
        """Remove what killed processes have left of checkpoints that are not there.

        See `storage.remove_unfinished`.
        """
        wait_for_writes(os.path.join(folder, "checkpoint"))
        storage.remove_unfinished(folder, self._name)
        rewriting.remove_unfinished(folder)

    def path_of(self, prefix: str) -> str:
        """Return where the state of a checkpoint is."""
        return storage.json_path(prefix, self._name)

    def exists(self, prefix: str) -> bool:
        """Return whether a checkpoint has this state."""
        return bool(tf.io.gfile.exists(self.path_of(prefix)))

    def step_of(self, prefix: str) -> int | None:
        """Return the step of the state of a checkpoint; None if it cannot be read."""
        saved = self._document_or_none(prefix)
        return None if saved is None else saved.step

    def lacks_events(self, prefix: str) -> bool:
        """Return whether callbacks had not had all events of a checkpoint's step."""
        saved = self._document_or_none(prefix)
        return saved is not None and saved.is_in_step

    def epoch_of(self, prefix: str) -> int | None:
        """Return the epoch with which training goes on from a checkpoint, if known."""
        saved = self._document_or_none(prefix)
        epoch = None if saved is None else loop_state.epoch_of(saved.loops)
        return None if epoch is None else epoch.number

    def _document_or_none(self, prefix: str) -> Document | None:
        """Return what was saved beside a checkpoint; None if it cannot be read."""
        try:
            return _read(prefix, self._name)
        except Exception:  # a damaged file may raise anything
            return None

    def read(self, prefix: str) -> RestoredState | None:
        """Read the state beside a checkpoint, if there is one, for `Part.restore`."""
        # A file that cannot be used is reported and left alone. Training then goes on
        # from the checkpoint, and callbacks start over. A worker without a state there
        # takes over the chief's.
        name = self._name if self.exists(prefix) else storage.name_of("")
        path = storage.json_path(prefix, name)
        if not tf.io.gfile.exists(path):
            if other_states := storage.others(prefix, name):
                logging.warning(
                    "hookbridge: the checkpoint %s has no state of callbacks (%s), "
                    "though other checkpoints of this job do, such as %s. Training "
                    "goes on from the checkpoint; callbacks start over.",
                    prefix,
                    os.path.basename(path),
                    other_states[-1],
                )
            else:
                log_without_state(prefix)
            return None
        try:
            saved = _read(prefix, name)
            callbacks = [callback for part in self.parts for callback in part.callbacks]
            is_of_chief = task_of() == "worker" and name == storage.name_of("")
            restored = RestoredState(saved, callbacks, path, is_of_chief=is_of_chief)
        except Exception as e:  # a damaged file may raise anything
            logging.warning(
                "hookbridge: the state of callbacks in %s cannot be used (%s: %s). "
                "Training goes on from the checkpoint; callbacks start over.",
                path,
                type(e).__name__,
                e,
            )
            return None
        restored.report(is_own=name == self._name)
        if saved.is_in_step and name == self._name:
            logging.warning(
                "hookbridge: the job ended during the step of the checkpoint %s, "
                "before its callbacks had all events of that step. These events are "
                "not repeated: the counts of callbacks and the mean of the epoch "
                "lack that batch.",
                prefix,
            )
        return restored


def _read(prefix: str, name: str) -> Document:
    """Read what was saved beside a checkpoint, with the states of its loops parsed."""
    contents = document.read(prefix, name)
    loops = [loop_state.parse(loop, contents.step) for loop in contents.loops]
    return contents._replace(loops=loops)
