"""A saver hook whose files are written while the training goes on."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.adapters.session_graph import saved
from hookbridge.adapters.session_state.savers import FollowedSavers, let_others_wait
from hookbridge.adapters.state import storage
from hookbridge.adapters.state.save_listeners import (
    Save,
    SaveListener,
    listeners_of_save,
)
from hookbridge.adapters.state.write_order import InThread, wait_for_writes
from hookbridge.checkpoints.value_copies import ValueCopies
from hookbridge.ground import collected, compat
from hookbridge.ground.arguments import amount, instance, optional_count, path
from hookbridge.ground.patching import before_close
from hookbridge.ground.protocols import Graph, RunContext, RunValues, Saver, Session

v1: Any = tf.compat.v1
_SessionInterface: Any = compat.private("SessionInterface")


class BackgroundSaverHook(v1.train.CheckpointSaverHook):  # type: ignore[misc]
    """A `CheckpointSaverHook` that writes its files in a thread.

    A step in which a `CheckpointSaverHook` saves waits until the files are there. Here
    it waits until the values are copied. Files, steps, names and the states of
    callbacks with the checkpoints are the same, in a session and in `fit`:

    - A checkpoint is written when callbacks have had all events of its step, once, with
      what they have set. If an error ends the loop before, it is written as it is then.
    - One save at a time: a save that is due while the files of the last one are being
      written waits for them. So does any other saver of the graph.
    - `after_save` of a listener is called when the files are there, between two steps,
      on the thread of the loop. Its `session` has the values of that moment. If it
      asks for a stop, the training stops then.
    - `end` waits for the files. So does the end of a session by an error, and the exit
      of the process.
    - An error of the thread is logged, and raised in the loop, in the first step after
      it.

    A process that is killed loses the checkpoint whose files are being written; the one
    before it is whole, with its state.

    The memory holds the values twice, from the first save to the end: the next save
    reuses the memory of the last one.

    Give it in the place of a `CheckpointSaverHook`. A `MonitoredTrainingSession` makes
    another one, unless `save_checkpoint_steps` and `save_checkpoint_secs` are None.

    Args:
      checkpoint_dir: the folder of the checkpoints.
      save_secs: seconds between two saves; this or `save_steps` has to be given.
      save_steps: steps between two saves.
      saver: a `tf.compat.v1.train.Saver`; by default the graph's.
      checkpoint_basename: what the names of the files begin with.
      scaffold: a `Scaffold`, for its saver; not together with `saver`.
      listeners: each a `CheckpointSaverListener`, whose methods are called once for
        each save, on the thread of the loop.
      save_graph_def: whether `graph.pbtxt` and a `.meta` file are written too.

    Raises:
      hookbridge.errors.InvalidArgumentError: `checkpoint_dir` is not a path,
        `save_steps` or `save_secs` is not a number above 0, or another argument is not
        what it says.
      ValueError: as `CheckpointSaverHook`, for `save_secs` with `save_steps` and for
        `saver` with `scaffold`.
      hookbridge.errors.RefusedError: in `after_create_session`, where parameter servers
        hold the values: they write them themselves.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: object = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: object = None,
        listeners: Sequence[Any] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        checkpoint_dir = path("checkpoint_dir", checkpoint_dir, "a directory")
        optional_count("save_steps", save_steps)
        if save_secs is not None:
            amount("save_secs", save_secs)
        _check_parts(saver, checkpoint_basename, scaffold, listeners)
        super().__init__(
            checkpoint_dir,
            save_secs,
            save_steps,
            saver,
            checkpoint_basename,
            scaffold,
            listeners,
            save_graph_def,
        )
        self._order: InThread | None = None  # that of the last save
        # Those of the last save, until its listeners have had `after_save`.
        self._writes: list[Future[None]] = []
        self._written_step = 0
        self._has_ended = False
        self._copies = ValueCopies()

    def begin(self) -> None:
        """See `SessionRunHook.begin`."""
        self._release()  # of a run that an error ended
        wait_for_writes()
        self._order, self._writes, self._has_ended = None, [], False
        super().begin()

    def after_create_session(self, session: Session, coord: object) -> None:
        """See `SessionRunHook.after_create_session`."""
        _check_is_local(session, self._get_saver())
        self._write_at_close(session)
        if not isinstance(session, LiveSession):
            if not listeners_of_save(session.graph, self._listeners):
                _follow_savers(session)
            let_others_wait(session)
        super().after_create_session(session, coord)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """See `SessionRunHook.after_run`."""
        are_done = all(write.done() for write in self._writes)
        if self._writes and are_done and self._finish(run_context.session):
            run_context.request_stop()
        super().after_run(run_context, run_values)

    def end(self, session: Session) -> None:
        """See `SessionRunHook.end`."""
        self._release()
        self._finish(session)
        self._has_ended = True  # nothing is gained by a thread any more
        self._copies = ValueCopies()
        super().end(session)

    def _save(self, session: Session, step: int) -> bool:
        """Save as `CheckpointSaverHook._save`; return whether to stop."""
        if self._has_ended:
            return bool(super()._save(session, step))
        self._release()
        stop = self._finish(session)
        for listener in self._listeners:
            listener.before_save(session, step)
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        prefix = storage.prefix_of(self._get_saver(), self._save_path, step)
        order = self._order = InThread(prefix, self._writes.append)
        write = functools.partial(self._write, session, step, prefix, order)
        listeners = listeners_of_save(session.graph, self._listeners)
        for listener in listeners:
            listener.save_session(Save(session, step, prefix, write, order))
        if not listeners:
            write()
            order.release()
        return stop

    def _write(self, session: Session, step: int, prefix: str, order: InThread) -> str:
        """Copy the values and let the thread write them; return the path."""
        saver = self._get_saver()
        # The method of the class: who follows this saver has been told of the save.
        save = functools.partial(
            type(saver).save,
            saver,
            save_path=self._save_path,
            global_step=step,
            write_meta_graph=self._save_graph_def,
        )
        if self._has_ended:
            wait_for_writes(prefix)
            save(sess=session)
            return prefix
        is_busy = not all(write.done() for write in self._writes)
        copies = ValueCopies() if is_busy else self._copies
        values = copies.of(_values(session, saver))
        is_of_v1 = saver.saver_def.version == saver.saver_def.V1
        older = functools.partial(saved.write, in_one_file=True)
        write = older if is_of_v1 else saved.write
        moment = _Moment(session.graph, values, write)
        self._written_step = step
        order.write_values(functools.partial(_in_thread, save, moment))
        return prefix

    def _release(self) -> None:
        """Let the thread write what waits for the end of its step."""
        if self._order is not None:
            self._order.release()

    def _write_at_close(self, session: Session) -> None:
        """Write what is held when an error, or a recovery, closes the session."""

        def write() -> None:
            self._release()
            wait_for_writes()

        before_close(session, write)

    def _finish(self, session: Session) -> bool:
        """Wait for the files of the last save and tell its listeners.

        Returns whether one of them asks for a stop; raises what the thread has met.
        """
        writes, self._writes = self._writes, []
        for write in writes:
            write.result()
        if not writes:
            return False
        log = v1.SessionLog(
            status=v1.SessionLog.CHECKPOINT, checkpoint_path=self._save_path
        )
        self._summary_writer.add_session_log(log, self._written_step)
        stops = [
            listener.after_save(session, self._written_step)
            for listener in self._listeners
            if not isinstance(listener, SaveListener)
        ]
        return any(stops)


class _Moment(_SessionInterface):  # type: ignore[misc]
    """The copied values of a session, which a `Saver` saves as if it were one."""

    def __init__(
        self,
        graph: Graph,
        values: Mapping[saved.SavedArray, Any],
        write: Callable[[str, Mapping[saved.SavedArray, Any]], str],
    ) -> None:
        self._graph, self._values, self._write = graph, values, write

    @property
    def graph(self) -> Any:
        return self._graph

    def run(self, fetches: Any, feed_dict: Any = None, *_: Any, **__: Any) -> str:
        """Write the values; a `Saver` asks for its save op, and feeds the path."""
        (path,) = feed_dict.values()
        return self._write(path, self._values)


def _in_thread(save: Callable[..., Any], moment: _Moment) -> None:
    """Write a checkpoint; an error is logged at once.

    The loop raises it in its next step, if an error of its own has not ended it.
    """
    try:
        # In eager mode a `Saver` would not ask its session.
        with tf.Graph().as_default():
            save(sess=moment)
    except Exception as e:
        logging.error("hookbridge: a checkpoint could not be written: %s", e)
        raise


def _follow_savers(session: Session) -> None:
    """Let other savers of a graph without callbacks wait for the thread."""

    def note(*_: Any) -> None:
        """Nobody keeps a state beside these checkpoints."""

    savers = FollowedSavers(session.graph, note, note)
    savers.collecting.remove()
    before_close(session, savers.leave)


def _values(session: Session, saver: Saver) -> dict[saved.SavedArray, Any]:
    """Return what the saver would write now."""
    if isinstance(session, LiveSession) and saver is session.graph.saver:
        values = session.saved_values()
        return {
            saved.SavedArray(name, "", name): value for name, value in values.items()
        }
    return saved.fetch(session, saved.entries_of_saver(saver, session.graph))


def _check_parts(
    saver: object, basename: object, scaffold: object, listeners: Any
) -> None:
    """Refuse arguments that would fail in the first save."""
    if saver is not None and not collected.is_saver(saver):
        instance("saver", saver, v1.train.Saver, "a `tf.compat.v1.train.Saver`")
    basename = path("checkpoint_basename", basename, 'a name such as "model.ckpt"')
    if os.path.dirname(basename):
        raise errors.InvalidArgumentError(
            f"Received checkpoint_basename={basename!r}; expected a name without a "
            "folder. Give the folder as `checkpoint_dir`."
        )
    if scaffold is not None and not hasattr(scaffold, "saver"):
        instance("scaffold", scaffold, v1.train.Scaffold, "a `Scaffold`")
    instance("listeners", listeners or (), (list, tuple), "a list of listeners")
    for listener in listeners or ():
        kind = v1.train.CheckpointSaverListener
        if not hasattr(listener, "after_save"):
            instance("listeners", listener, kind, "`CheckpointSaverListener`s")


def _check_is_local(session: Session, saver: Saver) -> None:
    """Refuse values that are on parameter servers; `fit` has done so before."""
    if isinstance(session, LiveSession):
        return
    entries = saved.entries_of_saver(saver, session.graph)
    devices = [tf.DeviceSpec.from_string(t.device) for t in entries.values()]
    if len({(device.job, device.task) for device in devices}) > 1:
        raise errors.RefusedError(
            "`BackgroundSaverHook` copies the values of its own process, but "
            "parameter servers hold some values of this session. Use "
            "`CheckpointSaverHook`; the servers then write the values.",
            see="background saves",
        )
