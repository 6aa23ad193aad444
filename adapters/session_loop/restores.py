"""Which checkpoint a session was restored from.

A saver lists its last checkpoints only where a session is restored from a directory,
not from a file as by `ChiefSessionCreator(checkpoint_filename_with_path=...)`.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

_PREFIXES: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def watch(graph: Any) -> None:
    """Follows the savers of a graph, also the one that a Scaffold is about to make."""
    import tensorflow as tf

    key = tf.compat.v1.GraphKeys.SAVERS
    for saver in graph.get_collection(key):
        _follow(saver)
    add = graph.add_to_collection
    if hasattr(add, "follows_savers"):
        return

    @functools.wraps(add)
    def add_to_collection(name: str, value: Any) -> None:
        add(name, value)
        if name == key:
            _follow(value)

    add_to_collection.follows_savers = True  # type: ignore[attr-defined]
    graph.add_to_collection = add_to_collection


def unwatch(graph: Any) -> None:
    """The session is there, and with it all savers it is restored by."""
    if hasattr(graph.add_to_collection, "follows_savers"):
        del graph.add_to_collection


def prefix_of(session: Any) -> str | None:
    """Path of the checkpoint without suffix, or None if none is known."""
    return _PREFIXES.get(session)


def _follow(saver: Any) -> None:
    if "restore" in vars(saver):
        return
    restore = type(saver).restore

    @functools.wraps(restore)
    def followed(sess: Any, save_path: Any) -> None:
        restore(saver, sess, save_path)
        _PREFIXES[sess] = str(save_path)

    saver.restore = followed


def let_go(saver: Any) -> None:
    """The saver is as it was."""
    vars(saver).pop("restore", None)
