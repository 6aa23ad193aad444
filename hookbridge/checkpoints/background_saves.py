"""A saver hook whose files are written while the training goes on."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.adapters.hooked_loop.fit_states import FitStates
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.adapters.session_graph import saved
from hookbridge.adapters.session_state.run_state import keeper_of_graph
from hookbridge.checkpoints.value_copies import ValueCopies
from hookbridge.ground import compat
from hookbridge.ground.arguments import amount, optional_count, path
from hookbridge.ground.protocols import Session

v1: Any = tf.compat.v1
_SessionInterface: Any = compat.private("SessionInterface")


class BackgroundSaverHook(v1.train.CheckpointSaverHook):  # type: ignore[misc]
    """A `CheckpointSaverHook` that writes its files in a thread.

    A step in which a `CheckpointSaverHook` saves waits until the files are there. Here
    it waits until the values are copied. Files, steps, names and the states of
    callbacks beside the checkpoints are the same, in a session and in `fit`:

    - One save at a time: a save that is due while the files of the last one are being
      written waits for them.
    - `after_save` of a listener is called when the files are there, between two steps,
      on the thread of the loop. Its `session` has the values of that moment. If it
      asks for a stop, the training stops then.
    - `end` waits for the files. So does the exit of the process, after an error too.
    - An error of the thread is logged, and raised in the loop, in the first step after
      it.

    A process that is killed loses the checkpoint whose files are being written; the one
    before it is whole, with its state.

    The memory holds the values twice, from the first save to the end: the copies of the
    next save go where those of the last one were. If callbacks set variables in the
    step of a save, it is written once more with them, and the memory may hold them a
    third time meanwhile.

    Give it in the place of a `CheckpointSaverHook`. A `MonitoredTrainingSession` makes
    one of its own, unless `save_checkpoint_steps` and `save_checkpoint_secs` are None.

    Args:
      checkpoint_dir: the folder of the checkpoints.
      save_secs: seconds between two saves; this or `save_steps` has to be given.
      save_steps: steps between two saves.
      saver: a `tf.compat.v1.train.Saver`; by default that of the graph.
      checkpoint_basename: what the names of the files begin with.
      scaffold: a `Scaffold`, for its saver; not beside `saver`.
      listeners: each a `CheckpointSaverListener`, whose methods are called once for
        each save, on the thread of the loop.
      save_graph_def: whether `graph.pbtxt` and a `.meta` file are written too.

    Raises:
      hookbridge.errors.InvalidArgumentError: `checkpoint_dir` is no path, or
        `save_steps` or `save_secs` is no number above 0.
      ValueError: as `CheckpointSaverHook`, for `save_secs` beside `save_steps` and for
        `saver` beside `scaffold`.
      hookbridge.errors.RefusedError: in `after_create_session`, where parameter servers
        hold the values: they write them themselves.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[Any] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        checkpoint_dir = path("checkpoint_dir", checkpoint_dir, "a directory")
        optional_count("save_steps", save_steps)
        if save_secs is not None:
            amount("save_secs", save_secs)
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
        self._pool: ThreadPoolExecutor | None = None
        # Those of the last save, until its listeners have had `after_save`.
        self._writes: list[Future[None]] = []
        self._written_step = 0
        self._has_ended = False
        self._copies = ValueCopies()

    def begin(self) -> None:
        """See `SessionRunHook.begin`."""
        wait_for_writes()  # of a run that an error ended
        self._writes, self._has_ended = [], False
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "hookbridge-save")
        super().begin()

    def after_create_session(self, session: Session, coord: Any) -> None:
        """See `SessionRunHook.after_create_session`."""
        _check_is_local(session, self._get_saver())
        super().after_create_session(session, coord)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """See `SessionRunHook.after_run`."""
        are_done = all(write.done() for write in self._writes)
        if are_done and self._finish(run_context.session):
            run_context.request_stop()
        super().after_run(run_context, run_values)

    def end(self, session: Session) -> None:
        """See `SessionRunHook.end`."""
        self._finish(session)
        self._has_ended = True  # nothing is gained by a thread any more
        self._copies = ValueCopies()
        super().end(session)

    def _save(self, session: Session, step: int) -> bool:
        """Saves as `CheckpointSaverHook._save`; returns whether to stop."""
        if self._has_ended:
            return bool(super()._save(session, step))
        stop = self._finish(session)
        for listener in self._listeners:
            listener.before_save(session, step)
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        pads = self._get_saver()._pad_step_number
        prefix = (
            f"{self._save_path}-{step:08d}" if pads else f"{self._save_path}-{step}"
        )
        write = functools.partial(self._write, session, step, prefix)
        keeper = keeper_of_graph(session.graph)
        if keeper is None:
            write()
        else:
            keeper.save_session(session, prefix, write, self._in_order)
        for listener in self._listeners:
            if isinstance(listener, FitStates):
                listener.note_saved(
                    session, step, prefix, write, in_order=self._in_order
                )
        return stop

    def _in_order(self, call: Callable[..., None], *arguments: Any) -> None:
        """Calls something on the thread, after what it still has to do."""
        if self._has_ended or self._pool is None:
            call(*arguments)
        else:
            write = self._pool.submit(call, *arguments)
            self._writes.append(write)
            _writes.note(write)

    def _write(self, session: Session, step: int, prefix: str) -> str:
        """Copies the values and lets the thread write them; returns the path."""
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
            save(sess=session)
            return prefix
        is_busy = not all(write.done() for write in self._writes)
        copies = ValueCopies() if is_busy else self._copies
        values = copies.of(_values(session, saver))
        is_of_v1 = saver.saver_def.version == saver.saver_def.V1
        write = saved.write_in_one_file if is_of_v1 else saved.write
        moment = _Moment(session.graph, values, write)
        self._written_step = step
        self._in_order(_in_thread, save, moment)
        return prefix

    def _finish(self, session: Session) -> bool:
        """Waits for the files of the last save and tells its listeners.

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
            if not isinstance(listener, FitStates)
        ]
        return any(stops)


class _Moment(_SessionInterface):  # type: ignore[misc]
    """The copied values of a session, which a `Saver` saves as if it were one."""

    def __init__(
        self,
        graph: Any,
        values: Mapping[saved.SavedArray, Any],
        write: Callable[[str, Mapping[saved.SavedArray, Any]], str],
    ) -> None:
        self._graph, self._values, self._write = graph, values, write

    @property
    def graph(self) -> Any:
        return self._graph

    def run(self, fetches: Any, feed_dict: Any = None, *_: Any, **__: Any) -> str:
        """Writes the values; a `Saver` asks for its save op, and feeds the path."""
        (path,) = feed_dict.values()
        return self._write(path, self._values)


class _Writes:
    """What the threads of all hooks of this process still have to write."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Nothing is to be written; a forked process has none of the threads."""
        self.unfinished: set[Future[None]] = set()
        # Several hooks may have one `Saver`, which counts the files that it keeps.
        self.lock: threading.Lock = threading.Lock()

    def note(self, write: Future[None]) -> None:
        """A thread has something to write."""
        self.unfinished.add(write)
        write.add_done_callback(self.unfinished.discard)


_writes = _Writes()
os.register_at_fork(after_in_child=_writes.begin)


def wait_for_writes() -> None:
    """Waits until no thread writes a checkpoint; a run that begins reads them."""
    wait(list(_writes.unfinished))


def _in_thread(save: Callable[..., Any], moment: _Moment) -> None:
    """Writes a checkpoint; an error is logged at once.

    The loop raises it in its next step, if an error of its own has not ended it.
    """
    try:
        # In eager mode a `Saver` would not ask its session.
        with _writes.lock, tf.Graph().as_default():
            save(sess=moment)
    except Exception as e:
        logging.error("hookbridge: a checkpoint could not be written: %s", e)
        raise


def _values(session: Session, saver: Any) -> dict[saved.SavedArray, Any]:
    """What the saver would write now."""
    if isinstance(session, LiveSession) and saver is session.graph.saver:
        values = session.saved_values()
        return {
            saved.SavedArray(name, "", name): value for name, value in values.items()
        }
    return saved.fetch(session, saved.entries_of_saver(saver, session.graph))


def _check_is_local(session: Session, saver: Any) -> None:
    """Refuses values that are on parameter servers; `fit` has done so before."""
    if isinstance(session, LiveSession):
        return
    entries = saved.entries_of_saver(saver, session.graph)
    devices = [tf.DeviceSpec.from_string(t.device) for t in entries.values()]
    if len({(each.job, each.task) for each in devices}) > 1:
        raise errors.RefusedError(
            "`BackgroundSaverHook` copies the values of its process, and those of this "
            "session are on parameter servers too. Use "
            "`CheckpointSaverHook`, for which the servers write them.",
            see="background saves",
        )
