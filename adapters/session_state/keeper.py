"""When the state of callbacks is saved and restored in the sessions of a graph."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from absl import logging

from hookbridge.adapters.session_graph import session_variables
from hookbridge.adapters.session_state.loop_state import LoopState, best_of, parse
from hookbridge.adapters.session_state.saves import Saves, WorkerCheckpoints
from hookbridge.adapters.state.backups import Backup, newer_than
from hookbridge.adapters.state.backups import of as backups_of
from hookbridge.adapters.state.files import CallbackState
from hookbridge.adapters.state.moments import Checkpoint, Ending
from hookbridge.adapters.state.parts import Part, Saved, note_ended
from hookbridge.ground.protocols import Callback, Graph, Session
from hookbridge.ground.tf_config import ClusterConfig, task_of

# A keeper lives as long as a run or a saver holds it, and holds its callbacks.
_KEEPERS: weakref.WeakKeyDictionary[Any, weakref.ref[StateKeeper]] = (
    weakref.WeakKeyDictionary()
)
_KEEPERS_OF_CALLBACKS: weakref.WeakValueDictionary[int, StateKeeper] = (
    weakref.WeakValueDictionary()
)


class StateKeeper:
    """Keeps the state of the callbacks of a graph with the checkpoints of its savers.

    The state is written before its checkpoint, so that no checkpoint is ever without
    one: within a step, as it is before the callbacks' events of that step. After the
    events it is written again, and so is the checkpoint if the callbacks set variables
    (`EarlyStopping` that restores the best weights, `ReduceLROnPlateau`).

    All calls of `as_hooks` share one state. A worker writes its own beside each
    checkpoint of the chief. `checkpoint_dir` is None if this process cannot know it.
    """

    def __init__(self, graph: Graph, checkpoint_dir: str | None) -> None:
        self._saves = Saves(graph, self.before_save, self.after_save)
        self._worker: WorkerCheckpoints | None = None
        self._is_kept, task = True, ""
        if task_of() == "worker":
            task = f"worker-{ClusterConfig.from_environment().task_index}"
            self._is_kept = checkpoint_dir is not None
            if checkpoint_dir is not None:
                self._worker = WorkerCheckpoints(checkpoint_dir)
        self._files = CallbackState(task)
        self._groups: list[RunState] = []
        # The session that callbacks know (a recovery makes another one), and what was
        # found beside the checkpoint that it was restored from.
        self._session: Any = None
        self._found: Saved | None = None
        self._backup: Backup | None = None  # what the session goes on from, if any
        # Checkpoints whose state has to wait: for the events of their step, or until
        # all callbacks know the session; and those of the last step that has some.
        self._pending: list[Checkpoint] = []
        self._latest: tuple[int, list[Checkpoint]] = (-1, [])

    @property
    def is_closed(self) -> bool:
        """Whether its session was closed after a clean end."""
        return self._saves.is_closed

    def join(self, group: RunState) -> None:
        """Adds callbacks, before their session is created."""
        if self._session is not None:
            # The groups so far belong to an earlier session.
            self._session, self._pending, self._latest = None, [], (-1, [])
            self._groups.clear()
        self._groups.append(group)

    def choose(self, session: Session, step: int, backups: Sequence[Backup]) -> int:
        """Before `on_train_begin`, in which callbacks may restore a backup.

        Returns the step at which the training goes on, by the newer one of checkpoint
        and backup.
        """
        checkpoint = self._saves.restored_from(session)
        if checkpoint is None or self._worker is not None:
            return step
        newer = newer_than(checkpoint, step, backups, self._files)
        if newer is None:
            return step
        self._backup, step = newer
        return step

    def restore(self, session: Session, *, went_back: bool) -> Saved | None:
        """What callbacks have to go on from in a new session, if anything."""
        if session is not self._session:
            # A worker that made a new session goes on as it is.
            goes_on = self._session is not None and self._worker is not None
            self._session = session
            for group in self._groups:
                group.is_ready = False
            # Those of a session that was never created are there a second time.
            groups = {tuple(map(id, g.part.callbacks)): g for g in self._groups}
            self._set_groups(groups.values())
            reads = self._is_kept and (went_back or not goes_on)
            self._found = self._read() if reads else None
        return self._found

    def _read(self) -> Saved | None:
        """The state to go on with: a backup's, a worker's own or a checkpoint's."""
        worker = self._worker
        if not self._saves.in_session() and worker is None:
            # A Scaffold adds a saver to the collection only if it makes the saver.
            logging.warning(
                "hookbridge: the saver of this session's Scaffold is not in the "
                "collection `tf.compat.v1.GraphKeys.SAVERS`, so the state of "
                "callbacks is not saved with its checkpoints. Add it: "
                "`tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.SAVERS, "
                "saver)`."
            )
        restored = self._saves.restored_from(self._session)
        prefix = restored if worker is None else worker.newest()
        backup, self._backup = self._backup, None
        if backup is not None:
            prefix = backup.prefix
        if prefix is None:
            return None
        # A worker without a state of its own takes over the chief's.
        of_chief = worker is not None and not self._files.exists(prefix)
        return self._files.read(prefix, parse, "" if of_chief else None)

    def _set_groups(self, groups: Collection[RunState]) -> None:
        self._groups = list(groups)
        self._files.parts = [group.part for group in self._groups]

    def ready(self, group: RunState) -> None:
        """A group goes on; once all do, what was saved before gets its state."""
        group.is_ready = True
        if all(group.is_ready for group in self._groups):
            self._saves.know(self._session)
            late, self._pending = self._pending, []
            self._settle([each for each in late if not self._files.exists(each.prefix)])

    @property
    def _step(self) -> int:
        return max(int(group.run.step) for group in self._groups)

    def _must_wait(self, session: Session) -> bool:
        return session is not self._session or any(
            group.run.in_step or not group.is_ready for group in self._groups
        )

    def save_session(
        self,
        session: Session,
        prefix: str,
        write: Callable[[], Any],
        in_order: Callable[[Callable[[], None]], None],
    ) -> None:
        """Saves a session with the state of callbacks, where no saver of it does.

        See `Checkpoint` for `write` and `in_order`.
        """
        if self.is_closed:
            write()
        else:
            self._saves.save(session, prefix, write, in_order=in_order)

    def before_save(self, session: Session, prefix: str) -> None:
        """A checkpoint is about to be written, by any saver of the graph."""
        is_known = session is self._session and all(g.is_ready for g in self._groups)
        if self._is_kept and self._worker is None and is_known:
            self._files.save(prefix, self._step)
            for group in self._groups:
                if group.is_over:
                    note_ended(group.part.callbacks, prefix, self._step)

    def after_save(
        self,
        session: Session,
        prefix: str,
        write_as_saved: Callable[[], Any],
        **later: Any,
    ) -> None:
        """A checkpoint was written; `write_as_saved` does so once more."""
        if not self._is_kept or self._worker is not None:
            return
        mark = functools.partial(session_variables.writes, session)
        checkpoint = Checkpoint(prefix, session, mark, write_as_saved, **later)
        if self._must_wait(session):
            self._pending.append(checkpoint)
        else:
            self._note_done([checkpoint])

    def _note_done(self, checkpoints: list[Checkpoint]) -> None:
        step, others = self._latest
        if step == self._step:
            prefixes = [each.prefix for each in checkpoints]
            checkpoints = checkpoints + [o for o in others if o.prefix not in prefixes]
        self._latest = (self._step, checkpoints)

    def _settle(self, checkpoints: list[Checkpoint]) -> None:
        """Writes checkpoints with what callbacks have set, then the state of each."""
        if checkpoints:
            self._note_done(checkpoints)
            self._follow()
            for each in checkpoints:
                self._write_state(each)

    def _write_state(self, checkpoint: Checkpoint) -> None:
        checkpoint.in_order(self._files.prepared(checkpoint.prefix, self._step))

    def step_is_over(self) -> None:
        """All callbacks of a group had their events of a step."""
        if self._worker is not None and (prefix := self._worker.new()) is not None:
            self._pending.append(Checkpoint(prefix))
        if self._pending:
            self._set_groups([group for group in self._groups if group.is_ready])
            if not self._must_wait(self._session):
                late, self._pending = self._pending, []
                self._settle(late)
            else:
                # An error may end the step before the other groups have its events.
                for each in self._pending:
                    self._write_state(each)
        if self._worker is None and not self._must_wait(self._session):
            for group in self._groups:
                for backup in group.backups:
                    if backup.is_new():
                        self._files.save(backup.prefix, self._step)

    def resave_after_evaluation(self) -> None:
        """Callbacks had events beside the steps: the last checkpoint gets them too."""
        step, done = self._latest
        if step == self._step and not self._must_wait(self._session):
            for group in self._groups:
                group.part.add_later_events()
            for each in done:
                self._write_state(each)

    def end(self, group: RunState) -> None:
        """After `on_train_end` of a group: saves what had to wait.

        A `CheckpointSaverHook` after the callbacks saves in its own `end`, with the
        state that the callbacks have then: savers are followed until the session
        closes.
        """
        group.is_over = True
        group.part.note_end()
        if not self._pending or not self._must_wait(self._session):
            step, done = self._latest
            again = done if step == self._step else []
            late, self._pending = self._pending + again, []
            self._settle(late)
        if self._latest[1]:
            prefix = self._latest[1][-1].prefix
            note_ended(group.part.callbacks, prefix, self._step)
        self._saves.leave_at_close(self._session)

    def _follow(self) -> None:
        for each in self._latest[1]:
            if each.session is self._session:  # neither lost nor of another process
                each.follow()


class RunState:
    """The state of the callbacks of one training run."""

    def __init__(
        self,
        graph: Graph,
        checkpoint_dir: str | None,
        run: Any,
        callbacks: Sequence[Any],
    ) -> None:
        self.run = run  # a `TrainRun`
        self.part: Part = Part(callbacks, lambda: run.loop_state().document())
        self.backups: list[Backup] = []
        self.is_ready = False  # whether they go on in the present session
        self.is_over = False  # whether they had `on_train_end`
        keeper = keeper_of_graph(graph)
        if keeper is None or keeper.is_closed:
            keeper = StateKeeper(graph, checkpoint_dir)
            _KEEPERS[graph] = weakref.ref(keeper)
        self.keeper = keeper
        keeper.join(self)

    def choose(self, session: Session, step: int) -> int:
        """See `StateKeeper.choose`."""
        self.backups = backups_of(self.part.callbacks)
        return self.keeper.choose(session, step, self.backups)

    @contextlib.contextmanager
    def ending(self, ending: Ending) -> Iterator[None]:
        """Around the last events of a run; see `moments`."""
        with contextlib.ExitStack() as stack:
            if ending.is_early:
                self.part.freeze()
                stack.enter_context(session_variables.held_back(self.run.session))
            yield
        self.keeper.end(self)

    @contextlib.contextmanager
    def without_effect(self) -> Iterator[None]:
        """Around an event that an earlier run has delivered: it sets nothing."""
        go_back = self.part.going_back()
        with session_variables.undone(self.run.session):
            yield
        go_back()

    def begin(self) -> None:
        """After `on_train_begin`."""
        self.part.begin()
        for callback in self.part.callbacks:
            _KEEPERS_OF_CALLBACKS[id(callback)] = self.keeper

    def restore(
        self, session: Session, keys: Collection[str], *, went_back: bool
    ) -> LoopState | None:
        """Gives callbacks the state of a new session; returns where the run was."""
        saved = self.keeper.restore(session, went_back=went_back)
        if saved is None:
            return None
        self.part.restore(saved)
        loops = saved.loops or [parse(None, saved.step)]
        return best_of(loops, self.run.loop_state().steps_per_epoch, keys)


def keeper_of_graph(graph: Any) -> StateKeeper | None:
    """What keeps the state of the callbacks in the sessions of a graph, or None."""
    reference = _KEEPERS.get(graph)
    return None if reference is None else reference()


def keeper_of(callback: Callback) -> StateKeeper | None:
    """What keeps the state of a callback's last training, or None."""
    return _KEEPERS_OF_CALLBACKS.get(id(callback))
