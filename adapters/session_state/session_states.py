"""When the state of callbacks is saved and restored in the sessions of a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from absl import logging

from hookbridge.adapters.session_graph import session_variables
from hookbridge.adapters.session_state.savers import FollowedSavers, WorkerCheckpoints
from hookbridge.adapters.state import rewriting
from hookbridge.adapters.state.backups import Backup, newest
from hookbridge.adapters.state.keeper import StateKeeper
from hookbridge.adapters.state.loop_state import LoopState
from hookbridge.adapters.state.moments import Checkpoint
from hookbridge.adapters.state.parts import Part
from hookbridge.adapters.state.restored_state import RestoredState
from hookbridge.adapters.state.save_listeners import Save, SaveListener
from hookbridge.adapters.state.write_order import WriteOrder
from hookbridge.ground.patching import before_close
from hookbridge.ground.processes.tf_config import ClusterConfig, task_of
from hookbridge.ground.protocols import Graph, Session


class StatefulTraining(Protocol):
    """A training as its state knows it; `TrainingRun` is one."""

    session: Any
    step: int
    in_step: bool

    def loop_state(self) -> LoopState:
        """Return where the training is, for the state beside a checkpoint."""


@dataclass(eq=False)
class KeptRun:
    """A training run whose callbacks have a state."""

    training: StatefulTraining
    part: Part
    backups: Sequence[Backup] = ()
    is_ready: bool = False  # whether its callbacks go on in the present session


class SessionStates(SaveListener):
    """Saves and restores the state of the callbacks of a graph with its sessions.

    Here is when this happens: around each save of a saver, and once callbacks have had
    all events of its step; `keeper` writes. All calls of `as_hooks` share one state. A
    worker writes its own beside each checkpoint of the chief.

    Args:
      graph: the graph.
      checkpoint_dir: where its sessions are saved; None if this process cannot know it.
    """

    def __init__(self, graph: Graph, checkpoint_dir: str | None) -> None:
        # Closed once the session was closed after a clean end.
        self.savers: FollowedSavers = FollowedSavers(
            graph, self.before_save, self.after_save
        )
        # None in the process that writes the checkpoints.
        self._worker: WorkerCheckpoints | None = None
        task = ""
        if task_of() == "worker":
            task = f"worker-{ClusterConfig.from_environment().task_index}"
            self._worker = WorkerCheckpoints(checkpoint_dir)
        self.keeper: StateKeeper = StateKeeper(self._now, task)
        if not task and checkpoint_dir is not None:
            rewriting.undo(checkpoint_dir)
            self.keeper.files.remove_unfinished(checkpoint_dir)
        self._runs: list[KeptRun] = []
        # The session that callbacks know (a recovery makes another one), and what was
        # found beside the checkpoint that it was restored from.
        self._session: Any = None
        self._found: RestoredState | None = None
        self._backup: Backup | None = None  # what the session goes on from, if any

    def join(self, run: KeptRun) -> None:
        """Add callbacks, before their session is created."""
        if self._session is not None:
            # The runs so far belong to an earlier session.
            self._session = None
            self.keeper.checkpoints, self.keeper.waiting = [], []
            self._runs.clear()
        self._runs.append(run)

    def find_restart_step(
        self, session: Session, step: int, backups: Sequence[Backup]
    ) -> int:
        """Return where training goes on; `on_train_begin` may restore a backup later.

        Args:
          session: the session, restored or not.
          step: its global step.
          backups: what the callbacks may restore.

        Returns:
          The step of the newer one of checkpoint and backup.
        """
        if self._worker is not None:
            return step
        self._backup, step = newest(
            self._checkpoint_of(session), step, backups, self.keeper.files
        )
        return step

    def restore(self, session: Session, *, went_back: bool) -> RestoredState | None:
        """Return what callbacks have to go on from in a new session, if anything."""
        if session is not self._session:
            # A worker that made a new session goes on as it is.
            goes_on = self._session is not None and self._goes_on(went_back)
            self._session = session
            self.keeper.seal(session)
            for run in self._runs:
                run.is_ready = False
            # Those of a session that was never created are there a second time.
            runs = {tuple(map(id, run.part.callbacks)): run for run in self._runs}
            self._set_runs(list(runs.values()))
            self._found = None if goes_on else self._read()
        return self._found

    def _read(self) -> RestoredState | None:
        """Read the state to go on with: that of a backup or of a checkpoint."""
        self.savers.collecting.remove()
        if not self.savers.followed and self._worker is None:
            # A Scaffold adds a saver to the collection only if it makes the saver.
            logging.warning(
                "hookbridge: the saver of this session's Scaffold is not in the "
                "collection `tf.compat.v1.GraphKeys.SAVERS`, so the state of "
                "callbacks is not saved with its checkpoints. Add it: "
                "`tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.SAVERS, "
                "saver)`."
            )
        backup, self._backup = self._backup, None
        prefix = backup.prefix if backup else self._checkpoint_of(self._session)
        return None if prefix is None else self.keeper.files.read(prefix)

    def _checkpoint_of(self, session: Session) -> str | None:
        """Return the checkpoint that a session has the values of, or None."""
        worker, restored = self._worker, self.savers.last_restored
        return restored.get(session) if worker is None else worker.newest()

    def is_lost(self, session: Session, *, went_back: bool) -> bool:
        """Return whether a session that replaces another one has nothing of it."""
        return not self._goes_on(went_back) and self._checkpoint_of(session) is None

    def _goes_on(self, went_back: bool) -> bool:
        """Return whether a session that replaces another one has what that had.

        A worker's variables are on the servers, which a new session finds unchanged.
        """
        return self._worker is not None and not went_back

    def _set_runs(self, runs: list[KeptRun]) -> None:
        self._runs = runs
        self.keeper.files.parts = [run.part for run in self._runs]

    def ready(self, run: KeptRun) -> None:
        """Note that a run goes on; once all do, write the state of what was saved."""
        run.is_ready = True
        if all(run.is_ready for run in self._runs):
            self.savers.known.add(self._session)
            # A state that was written in mid-step lacks what a new run has delivered
            # since: the end of the epoch, and what callbacks have set there.
            lacks = self._found is not None and self._found.document.is_in_step
            self._write_late(
                checkpoint
                for checkpoint in self.keeper.waiting
                if lacks or not self.keeper.files.exists(checkpoint.prefix)
            )

    def _now(self) -> tuple[int, bool]:
        """Return the step, and whether a run has not had all its events yet."""
        step = max(int(run.training.step) for run in self._runs)
        return step, any(run.training.in_step for run in self._runs)

    def _is_known(self, session: Session) -> bool:
        """Return whether it is the session in which all callbacks have their state."""
        return session is self._session and all(run.is_ready for run in self._runs)

    def _must_wait(self, session: Session) -> bool:
        """Return whether callbacks lack the session, or events of its last step."""
        in_step = any(run.training.in_step for run in self._runs)
        return in_step or not self._is_known(session)

    def save_session(self, save: Save) -> None:
        """Save a session, and do what a saver of the graph does around each save."""
        if self.savers.is_closed:
            save.write()
            save.order.release()
        else:
            self.savers.save(save.session, save.prefix, save.write, save.order)

    def before_save(self, session: Session, prefix: str, order: WriteOrder) -> None:
        """Note that a saver of the graph is about to write a checkpoint.

        Args:
          session: the session that is saved.
          prefix: the path of the checkpoint.
          order: see `Checkpoint`.
        """
        if self._worker is None and self._is_known(session):
            self.keeper.write_state(Checkpoint(prefix, order=order))

    def after_save(
        self,
        session: Session,
        prefix: str,
        write_as_saved: Callable[[], Any],
        order: WriteOrder,
    ) -> None:
        """Note that a checkpoint was written.

        Args:
          session: the session that was saved.
          prefix: the path of the checkpoint.
          write_as_saved: writes the checkpoint again.
          order: see `Checkpoint`.
        """
        if self._worker is not None:
            order.release()
            return
        mark = functools.partial(session_variables.writes, session)
        checkpoint = Checkpoint(prefix, session, mark, write_as_saved, order)
        if self._must_wait(session):
            self.keeper.waiting.append(checkpoint)
        else:
            self.keeper.note(checkpoint)
            checkpoint.finish()

    def _write_late(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Write checkpoints with what callbacks have set, then the state of each.

        No other one that waits is written.
        """
        late, self.keeper.waiting = list(checkpoints), []
        if late:
            self.keeper.note(*late)
            self.keeper.settle()

    def step_is_over(self) -> None:
        """Write what had to wait, once all callbacks of a run have had a step."""
        keeper, worker = self.keeper, self._worker
        if worker is not None and (prefix := worker.new()) is not None:
            keeper.waiting.append(Checkpoint(prefix))
        if keeper.waiting:
            self._set_runs([run for run in self._runs if run.is_ready])
            if not self._must_wait(self._session):
                self._write_late(keeper.waiting)
            else:
                # An error may end the step before the other runs have its events.
                keeper.write_state(*keeper.waiting)
        if worker is None and not self._must_wait(self._session):
            backups = [backup for run in self._runs for backup in run.backups]
            keeper.write_state(*(Checkpoint(b.prefix) for b in backups if b.is_new()))

    def resave_after_evaluation(self) -> None:
        """Write the state of the last checkpoint again, with events beside steps."""
        checkpoints = self.keeper.checkpoints_of_step()
        if checkpoints and not self._must_wait(self._session):
            for run in self._runs:
                run.part.add_later_events()
            self.keeper.write_state(*checkpoints)

    def end(self, run: KeptRun) -> None:
        """Write what had to wait, after `on_train_end` of a run.

        A `CheckpointSaverHook` after the callbacks saves in its own `end`, with the
        state that the callbacks have then: savers are followed until the session
        closes.
        """
        run.part.note_end()
        if not self.keeper.waiting or not self._must_wait(self._session):
            self._write_late(self.keeper.waiting + self.keeper.checkpoints_of_step())
        before_close(self._session, self.savers.leave)
