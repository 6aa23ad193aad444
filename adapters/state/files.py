"""The state of callbacks, saved beside each checkpoint and restored with it."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from absl import logging

from hookbridge.adapters.state import arrays as array_files
from hookbridge.adapters.state import attributes, codec, storage

# In version 1, the name of the arrays' file did not contain their digest.
VERSION = 2
# The size limit of a state: these bytes, plus so many times its checkpoint's size.
_MOST_BYTES = 64 * 2**20
_TIMES_CHECKPOINT = 4

# Callback -> where its last run in this process ended: the directory and the step.
_ENDED: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()


class Taken(NamedTuple):
    """The contents of the files of one state.

    Attributes:
      document: JSON.
      arrays: an `.npz` file; empty if there are no arrays.
    """

    document: bytes
    arrays: bytes


class Restored(NamedTuple):
    """What `CallbackState.restore` has found.

    Attributes:
      step: the global step that the state was taken at. It may differ from the step
        of the checkpoint: other workers move the global step meanwhile.
      extra: what `parse` returned.
    """

    step: int
    extra: Any


class CallbackState:
    """Keeps the state of callbacks together with a session's checkpoints.

    Beside `model.ckpt-120.index` there is a file `model.ckpt-120.hookbridge.json`. It
    holds, for each callback, the attributes that changed since `on_train_begin`.
    Numbers and texts are JSON. Arrays (such as the best weights of `EarlyStopping`) are
    in an `.npz` file whose name has the digest of its data. So a JSON file and its
    arrays always belong together, whenever the process is killed.

    Args:
      callbacks: those that are called in this process.
      extra: a function that returns what else belongs to the state, of types that
        `codec.encode` takes.
      group: number of the `as_hooks` call among those of the session.
      task: the name of this process in the files' names, such as "worker-1"; empty
        for the process that writes the checkpoints.
    """

    def __init__(
        self,
        callbacks: Sequence[Any],
        extra: Callable[[], Any],
        group: int = 0,
        task: str = "",
    ) -> None:
        self._callbacks = list(callbacks)
        self._extra = extra
        self._group = group
        self._name = storage.name_of(group, task)
        # Of a user's callback only attributes that differ from this are saved. The
        # counters of Keras's own callbacks are always saved.
        self._base = [
            {} if attributes.is_stock(c) else copy.deepcopy(attributes.storable(c))
            for c in self._callbacks
        ]

    # --- writing -----------------------------------------------------------------

    def save(self, prefix: str, step: int) -> None:
        """Writes the state that belongs to a checkpoint.

        Args:
          prefix: path of the checkpoint without suffix.
          step: the global step.
        """
        self.write(prefix, self.taken(step))

    def taken(self, step: int) -> Taken:
        """The present state, for `write`.

        Args:
          step: the global step.
        """
        arrays: dict[str, Any] = {}
        entries = []
        for callback, base in zip(self._callbacks, self._base, strict=True):
            state = {}
            for name, now in attributes.storable(callback).items():
                if name not in base or not attributes.same(now, base[name]):
                    state[name] = codec.encode(getattr(callback, name), arrays)
            entries.append({"class": type(callback).__name__, "state": state})
        document = {
            "version": VERSION,
            "step": step,
            "callbacks": entries,
            "loop": codec.encode(self._extra(), arrays),
        }
        data = b""
        if arrays:
            data = array_files.to_bytes(arrays)
            document["arrays"] = hashlib.sha256(data).hexdigest()
        return Taken(json.dumps(document, indent=1).encode(), data)

    def write(self, prefix: str, state: Taken) -> None:
        """Writes a state beside a checkpoint, which may not exist yet.

        Args:
          prefix: path of the checkpoint without suffix.
          state: what `taken` returned.
        """
        arrays = ""
        if state.arrays:
            digest = hashlib.sha256(state.arrays).hexdigest()
            arrays = storage.arrays_path(prefix, self._name, digest)
            if not storage.exists(arrays):
                storage.write(arrays, state.arrays)
        storage.write(f"{prefix}.{self._name}.json", state.document)
        storage.remove_unused(prefix, self._name, keep=arrays)

    def ended(self, prefix: str, step: int) -> None:
        """Notes that the callbacks already have the state that their run has saved.

        Args:
          prefix: path of a checkpoint of the run.
          step: the global step at which it ended.
        """
        for callback in self._callbacks:
            try:
                _ENDED[callback] = (os.path.dirname(prefix), step)
            except TypeError:
                continue  # it cannot be a key, so it is restored like a new object

    # --- reading -----------------------------------------------------------------

    def exists(self, prefix: str) -> bool:
        """Whether a checkpoint has this state."""
        return storage.exists(f"{prefix}.{self._name}.json")

    def restore(
        self,
        prefix: str,
        parse: Callable[[Any, int], Any] = lambda extra, step: None,
        of_task: str | None = None,
    ) -> Restored | None:
        """Restores the state that was saved beside a checkpoint, if there is one.

        A file that cannot be used is reported and left alone. Training then goes on
        from the checkpoint, and callbacks begin anew.

        Args:
          prefix: path of the checkpoint without suffix.
          parse: called with what `extra` had returned for the state, and with the
            state's step. It raises an exception if the file is damaged.
          of_task: the process whose state is read, if not this one's.

        Returns:
          What was found, or None.
        """
        name = self._name if of_task is None else storage.name_of(self._group, of_task)
        path = f"{prefix}.{name}.json"
        if not storage.exists(path):
            if others := storage.others(prefix, name):
                logging.warning(
                    "hookbridge: the checkpoint %s has no state of callbacks (%s), "
                    "though others of this job have, such as %s. Training goes on from "
                    "the checkpoint; callbacks begin anew.",
                    prefix,
                    os.path.basename(path),
                    others[-1],
                )
            return None
        try:
            most = _MOST_BYTES + _TIMES_CHECKPOINT * storage.checkpoint_bytes(prefix)
            document = json.loads(storage.read(path, most).decode())
            arrays = _arrays(document, prefix, name, most)
            step = int(document["step"])
            states = [
                (str(e["class"]), _attributes(e["state"], arrays))
                for e in document["callbacks"]
            ]
            found = Restored(step, parse(codec.decode(document["loop"], arrays), step))
        except Exception as e:  # a damaged file may raise anything
            logging.warning(
                "hookbridge: the state of callbacks in %s cannot be used (%s: %s). "
                "Training goes on from the checkpoint; callbacks begin anew.",
                path,
                type(e).__name__,
                e,
            )
            return None
        at = (os.path.dirname(prefix), step)
        # Another process may call callbacks that this one does not have.
        self._apply(states, path, at, is_own=of_task is None)
        return found

    def _apply(
        self,
        states: list[tuple[str, dict[str, Any]]],
        path: str,
        at: tuple[str, int],
        *,
        is_own: bool,
    ) -> None:
        left = list(self._callbacks)
        for name, state in states:
            target = next((c for c in left if type(c).__name__ == name), None)
            if target is None:
                if state and is_own:
                    logging.warning(
                        "hookbridge: %s has the state of a `%s` that is no longer "
                        "among the callbacks; it is left out.",
                        path,
                        name,
                    )
                continue
            left = [c for c in left if c is not target]
            base = self._base[
                next(i for i, c in enumerate(self._callbacks) if c is target)
            ]
            if _ended_at(target) == at:
                # The object already has what the file holds, and its
                # `on_train_begin` may have changed it since. Only Keras's own counters
                # are restored: they began anew there.
                counters = attributes.counters_of(target)
                base_only = [n for n in state if n not in counters]
                for attribute in base_only:
                    base.pop(attribute, None)
                state = {n: v for n, v in state.items() if n in counters}
            for attribute, value in state.items():
                try:
                    attributes.put(target, attribute, value)
                except Exception as e:  # a property of a user's class may raise
                    logging.warning(
                        "hookbridge: `%s.%s` cannot be restored from %s (%s: %s). "
                        "It begins anew; the other attributes are restored.",
                        name,
                        attribute,
                        path,
                        type(e).__name__,
                        e,
                    )
                    continue
                base.pop(attribute, None)  # so that the next checkpoint has it too


def _ended_at(callback: Any) -> tuple[str, int] | None:
    try:
        return _ENDED.get(callback)
    except TypeError:
        return None


def _attributes(state: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(state, dict):
        raise TypeError(f"a state is {state!r}, expected a dict")
    return {k: codec.decode(v, arrays) for k, v in state.items()}


def _arrays(document: Any, prefix: str, name: str, most: int) -> dict[str, Any]:
    """The arrays that a document refers to.

    Raises:
      ValueError: the file of arrays does not belong to the document, or the document's
        version is unknown.
    """
    if document["version"] not in (1, VERSION):
        raise ValueError(f"it has version {document['version']}, expected {VERSION}")
    keys = codec.array_keys([document["callbacks"], document["loop"]])
    if not keys:
        return {}
    if len(set(keys)) < len(keys):
        raise ValueError("it refers to one array twice")
    if document["version"] == 1:
        data = storage.read(f"{prefix}.{name}.npz", most)
    else:
        digest = document["arrays"]
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValueError(f"{digest!r} is no digest of its arrays")
        data = storage.read(storage.arrays_path(prefix, name, digest), most)
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError("its arrays are those of another state")
    return array_files.from_bytes(data, keys)
