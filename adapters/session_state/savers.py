"""Follows the savers of a graph, and in a worker the checkpoints of the chief."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.guest_record import unwrapped
from hookbridge.adapters.session_graph import session_variables
from hookbridge.adapters.state import storage
from hookbridge.adapters.state.write_order import WriteOrder, wait_for_writes
from hookbridge.ground import collected, compat
from hookbridge.ground.patching import Patches, before_close
from hookbridge.ground.protocols import Graph, Session


class FollowedSavers:
    """Follows the savers in the collection `SAVERS`, those of a later Scaffold too.

    The first one is that of the loop's `CheckpointSaverHook` and of what restores the
    session. `before_save(session, prefix, order)` is called before each save, on the
    thread that saves, and `after_save(session, prefix, write_as_saved, order)` after.
    `write_as_saved` writes the checkpoint again, with the session's present values,
    and calls neither.
    """

    def __init__(
        self,
        graph: Graph,
        before_save: Callable[..., None],
        after_save: Callable[..., None],
    ) -> None:
        self._graph = weakref.ref(graph)
        self._before_save, self._after_save = before_save, after_save
        self.is_closed = False  # whether the savers are not followed any more
        self.followed: list[Patches] = []
        # The path of the checkpoint that a session was restored from. A saver itself
        # knows it only if that was found in a directory, not by its name
        # (`checkpoint_filename_with_path`).
        self.last_restored: weakref.WeakKeyDictionary[Any, str] = (
            weakref.WeakKeyDictionary()
        )
        # The raw sessions in which callbacks have the state and train. A checkpoint
        # that is saved before is a copy of the one that the session was restored from.
        # Its name may differ: other workers may have moved the global step on while the
        # old one was written.
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()
        for saver in collected.savers(graph):
            self._follow(saver)
        add = type(graph).add_to_collection

        @functools.wraps(add)
        def add_to_collection(name: str, value: object) -> None:
            followed: Any = self._graph()
            before = collected.savers(followed)
            add(followed, name, value)
            for saver in collected.savers(followed)[len(before) :]:
                self._follow(saver)

        # Until there is a session: the savers that restore it are there then.
        self.collecting: Patches = Patches(
            graph, {"add_to_collection": add_to_collection}
        )
        self.collecting.install()

    def _follow(self, saver: Any) -> None:
        """Note each restore of a saver, and save state around each of its saves."""
        restore, save = saver.restore, saver.save

        @functools.wraps(restore)
        def followed_restore(sess: Session, save_path: object) -> None:
            restore(sess, save_path)
            self.last_restored[sess] = str(save_path)

        @functools.wraps(save)
        def followed_save(
            sess: Session,
            save_path: object,
            global_step: object = None,
            *args: Any,
            **kw: Any,
        ) -> Any:
            step = None if global_step is None else _number(sess, global_step)
            prefix = storage.prefix_of(saver, save_path, step)
            wait_for_writes(prefix)
            write = functools.partial(save, sess, save_path, global_step, *args, **kw)
            return self.save(sess, prefix, write, WriteOrder(prefix))

        methods = {"restore": followed_restore, "save": followed_save}
        self.followed.append(Patches(saver, methods))
        self.followed[-1].install()

    def save(
        self,
        session: Session,
        prefix: str,
        write: Callable[[], Any],
        order: WriteOrder,
    ) -> Any:
        """Call `write`, which saves the session, with what belongs before and after.

        It returns the path of the checkpoint, or nothing if there is none. See
        `Checkpoint` for `order`.
        """
        restored = self.last_restored.get(session, prefix)
        if session not in self.known and restored != prefix:
            # A worker that joins later looks for its state beside the new one.
            storage.carry_over(restored, prefix)
        self._before_save(session, prefix, order)

        def write_as_saved() -> Any:
            with session_variables.as_saved(session):
                return write()

        path = write_as_saved()
        if path:
            self._after_save(session, path, write_as_saved, order)
        return path

    def leave(self) -> None:
        """Put the savers back as they were."""
        for patches in self.followed:
            patches.remove()
        self.is_closed = True


def let_others_wait(session: Session) -> None:
    """Let savers of the session's hooks that no collection has wait for the thread too.

    It is called while the hooks get the new session.

    Args:
      session: the new, raw session.
    """
    names = compat.running_locals("create_session")
    if names is None:
        return  # somebody calls a hook alone
    followed = collected.savers(session.graph)
    for hook in map(unwrapped, names["self"]._hooks):
        if not isinstance(hook, tf.compat.v1.train.CheckpointSaverHook):
            continue
        saver = hook._get_saver()
        if not any(saver is known for known in followed):
            followed.append(saver)
            _let_wait(saver, session)


def _let_wait(saver: Any, session: Session) -> None:
    """Let each save of a saver wait for the thread, until a session is closed."""
    save = saver.save

    @functools.wraps(save)
    def waits(sess: Session, save_path: object, *args: Any, **kw: Any) -> Any:
        wait_for_writes(str(save_path))
        return save(sess, save_path, *args, **kw)

    waiting = Patches(saver, {"save": waits})
    waiting.install()
    before_close(session, waiting.remove)


class WorkerCheckpoints:
    """Follows the directory that the chief saves to.

    Each look costs one `stat` of a file. A remote directory is not looked at in each
    step: `new` finds nothing there, `newest` does.

    Args:
      directory: its path; None if this process does not know it, and finds nothing.
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._seen: Any = self._stamp()

    def newest(self) -> str | None:
        """Return the path of the newest checkpoint without suffix, or None."""
        directory = self._directory
        return None if directory is None else tf.train.latest_checkpoint(directory)

    def new(self) -> str | None:
        """Return the path of the newest checkpoint if it is new since the last look."""
        before, self._seen = self._seen, self._stamp()
        return None if self._seen == before else self.newest()

    def _stamp(self) -> Any:
        """Return what changes when a checkpoint has been written; None if unknown."""
        if self._directory is None or "://" in self._directory:
            return None
        try:
            status = os.stat(os.path.join(self._directory, "checkpoint"))
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino


def _number(session: Session, step: Any) -> int:
    """Return a step as it stands in the name of a checkpoint."""
    if isinstance(step, (tf.Tensor, tf.Variable)):
        return int(tf.compat.v1.train.global_step(session, step))
    return int(step)
