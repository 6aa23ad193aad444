"""When the state of callbacks is saved and restored in a training run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf
from absl import logging

from hookbridge.adapters.session_graph import variables as session_variables
from hookbridge.adapters.session_state import saves
from hookbridge.adapters.session_state.loop_state import LoopState, parse
from hookbridge.adapters.session_state.worker_checkpoints import WorkerCheckpoints
from hookbridge.adapters.state.files import CallbackState, Taken
from hookbridge.cluster import ClusterConfig, task_of


class Kept(Protocol):
    """What the keeper asks of its training run.

    Attributes:
      called: the callbacks that are called in this process.
      checkpoint_dir: the directory of the job's checkpoints, or None if this process
        cannot know it.
    """

    graph: Any
    session: Any
    step: int
    called: list[Any]
    checkpoint_dir: str | None

    @property
    def in_step(self) -> bool:
        """Whether a training step is running whose events are not all delivered."""

    @property
    def went_back(self) -> bool:
        """Whether the session is at an earlier step than before its recovery."""


class Epochs(Protocol):
    """What the keeper asks of the epochs of its training run."""

    def document(self) -> dict[str, Any]:
        """What belongs to a checkpoint beside the callbacks' own state."""

    def go_on_from(self, state: LoopState | None) -> None:
        """Goes on where the session is, after a restart or a recovery."""


class StateKeeper:
    """Keeps the state of a run's callbacks with the checkpoints of its session.

    The state is written before its checkpoint, so that no checkpoint is ever without
    one. If a checkpoint is saved within a step, it first gets the state from before the
    callbacks' events of that step. After these events it gets the new state. If the
    callbacks set variables then (`EarlyStopping` that restores the best weights,
    `ReduceLROnPlateau`), the checkpoint itself is written again too.

    A worker writes its own state beside each checkpoint of the chief.
    """

    def __init__(self, run: Kept, epochs: Epochs) -> None:
        self._run = run
        self._epochs = epochs
        self._saves = saves.of(run.graph)
        self._state: CallbackState | None = None
        self._saver: Any = None
        self._worker: WorkerCheckpoints | None = None
        # The session that the callbacks know: a recovery makes another one.
        self._session: Any = None
        # Checkpoints whose state has to wait: for the events of their step, or for the
        # state that a new session goes on from.
        self._late: list[str] = []
        # The last checkpoint: how to write it again, its session, the step and the
        # paths, and how many times variables had been set until then.
        self._again: Callable[[], Any] | None = None
        self._of: Any = None
        self._at = -1
        self._last: list[str] = []
        self._writes = 0
        self._final: Taken | None = None

    def begin(self) -> None:
        """After `on_train_begin`: restores a saved state and follows the savers."""
        run = self._run
        group, self._session = self._saves.join(self), run.session
        if task_of() == "worker":
            self._begin_on_worker(group)
            return
        savers = run.graph.get_collection(tf.compat.v1.GraphKeys.SAVERS)
        if not savers:
            # A Scaffold adds a saver to the collection only if it makes the saver.
            logging.warning(
                "hookbridge: the saver of this session's Scaffold is not in the "
                "collection `tf.compat.v1.GraphKeys.SAVERS`, so the state of "
                "callbacks is not saved with its checkpoints. Add it: "
                "`tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.SAVERS, "
                "saver)`."
            )
            return
        self._saver = savers[0]
        self._state = CallbackState(run.called, self._epochs.document, group)
        self._restore()
        # A `CheckpointSaverHook` saves as a session is created. That may have been
        # before this object joined.
        first = self._saves.saved_in(run.session)
        if first is not None and not self._state.exists(first):
            self._save([first])

    def _begin_on_worker(self, group: int) -> None:
        run = self._run
        if run.checkpoint_dir is None:
            return
        task = f"worker-{ClusterConfig.from_environment().task_index}"
        self._worker = WorkerCheckpoints(run.checkpoint_dir)
        self._state = CallbackState(run.called, self._epochs.document, group, task)
        self._restore()

    def session_is_new(self) -> None:
        """After a recovery: restores the state of the step the session went back to."""
        is_behind = self._worker is None or self._run.went_back
        if self._state is None or not is_behind:
            self._session = self._run.session
            self._epochs.go_on_from(None)
            return
        late, self._late = self._late, []
        prefix = self._restore()
        # A `CheckpointSaverHook` saves as a session is created, before the callbacks
        # know that session.
        self._save([p for p in late if p == prefix or self._of is self._session])

    def _restore(self) -> str | None:
        """Restores the state that belongs to the checkpoint of the session."""
        run, found = self._run, None
        self._session = run.session
        self._saves.know(run.session)
        if self._worker is not None:
            prefix = self._worker.newest()
        else:
            prefix = self._saves.restored_from(run.session)
            if prefix is None and self._saver.last_checkpoints:
                prefix = self._saver.last_checkpoints[-1]
        if self._state is not None and prefix is not None:
            # A worker without a state of its own takes over the chief's.
            of_chief = self._worker is not None and not self._state.exists(prefix)
            of_task = "" if of_chief else None
            found = self._state.restore(prefix, parse, of_task)
        self._epochs.go_on_from(None if found is None else found.extra)
        return prefix

    def saving(self, session: Any, prefix: str) -> None:
        """See `saves.Listener`."""
        if self._state is None or self._worker is not None:
            return
        if session is self._session:
            if self._final is not None:
                self._state.ended(prefix, self._run.step)
            self._state.write(prefix, self._final or self._state.taken(self._run.step))

    def saved(self, session: Any, prefix: str, again: Callable[[], Any]) -> None:
        """See `saves.Listener`."""
        self._again, self._of = again, session
        self._writes = session_variables.writes(session)
        if self._final is not None:
            return
        # The `CheckpointSaverHook` may save before the callbacks had their events of
        # the same step.
        if self._run.in_step or session is not self._session:
            self._late.append(prefix)
        else:
            self._at, self._last = self._run.step, [prefix]

    def _save(self, prefixes: list[str]) -> None:
        if self._state is not None and prefixes:
            self._at, self._last = self._run.step, prefixes
            for prefix in prefixes:
                self._state.save(prefix, self._run.step)

    def step_is_over(self) -> None:
        """All callbacks had their events of a step."""
        if self._late:
            self._save_late()
        elif self._worker is not None:
            prefix = self._worker.new()
            if prefix is not None:
                self._save([prefix])

    def end(self, cut_short: bool, *, epoch_ended: bool) -> None:
        """After `on_train_end`: saves what had to wait.

        A `CheckpointSaverHook` that comes after the callbacks saves in its own `end`:
        that checkpoint gets the state that the callbacks have now. The savers are
        followed until the session closes.

        Args:
          cut_short: whether another run goes on from the last checkpoint. It must be
            the same as in an uninterrupted run, so it stays without variables that
            `on_train_end` set.
          epoch_ended: whether the data, and with it an epoch, ended since the last
            step.
        """
        if epoch_ended and self._at == self._run.step:
            self._late = self._last + self._late
        if self._late:
            self._save_late()
        elif self._at == self._run.step and not cut_short:
            self._save_what_was_set()
        if self._state is not None:
            self._final = self._state.taken(self._run.step)
            if self._last:
                self._state.ended(self._last[-1], self._run.step)
        self._saves.leave_at_close(self._session, self)

    def _save_late(self) -> None:
        late, self._late = self._late, []
        self._save(late)
        self._save_what_was_set()

    def _save_what_was_set(self) -> None:
        """Writes the last checkpoint again if variables were set since."""
        if self._of is not self._run.session:
            return  # its session was lost, so it cannot be written again
        count = session_variables.writes(self._of)
        if self._again is not None and count != self._writes:
            self._writes = count
            self._again()
