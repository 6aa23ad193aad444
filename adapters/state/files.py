"""What callbacks count in, saved beside each checkpoint and restored with it."""

from __future__ import annotations

import copy
import functools
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from hookbridge.adapters.state import codec as state_codec

VERSION = 1


def suffix_of(group: int) -> str:
    """What the name of a checkpoint's state ends in; each group has its own file."""
    return f".hookbridge-{group}.json" if group else ".hookbridge.json"


class Taken(NamedTuple):
    """The contents of the files of one state.

    Attributes:
      document: JSON.
      arrays: an `.npz` file; empty if there are no arrays.
    """

    document: bytes
    arrays: bytes


class CallbackState:
    """Keeps the state of callbacks together with a session's checkpoints.

    Beside `model.ckpt-120.index` stands `model.ckpt-120.hookbridge.json`: for each
    callback the attributes that changed since `on_train_begin`, numbers and texts as
    JSON, arrays (such as the best weights of `EarlyStopping`) in an `.npz` file of
    the same name.

    Args:
      callbacks: those that are called on this worker.
      extra: a function that returns what else belongs to the state, made of what
        `state_codec.encode` takes.
      group: number of the `as_hooks` call among those of the session.
    """

    def __init__(
        self, callbacks: Sequence[Any], extra: Callable[[], Any], group: int = 0
    ) -> None:
        self._callbacks = list(callbacks)
        self._suffix = suffix_of(group)
        self._arrays = self._suffix.removesuffix("json") + "npz"
        self._extra = extra
        # A user's callback is saved as far as it differs from this; what a callback
        # of Keras counts in is saved whole.
        self._base = [
            {} if state_codec.is_stock(c) else copy.deepcopy(state_codec.storable(c))
            for c in self._callbacks
        ]

    # --- writing -----------------------------------------------------------------

    def save(self, prefix: str, step: int) -> None:
        """Writes the state that belongs to a checkpoint.

        Args:
          prefix: path of the checkpoint without suffix.
          step: its global step.
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
            for name, now in state_codec.storable(callback).items():
                if name not in base or not state_codec.same(now, base[name]):
                    state[name] = state_codec.encode(getattr(callback, name), arrays)
            entries.append({"class": type(callback).__name__, "state": state})
        document = {
            "version": VERSION,
            "step": step,
            "callbacks": entries,
            "loop": state_codec.encode(self._extra(), arrays),
        }
        buffer = io.BytesIO()
        if arrays:
            np.savez(buffer, **arrays)
        return Taken(json.dumps(document, indent=1).encode(), buffer.getvalue())

    def write(self, prefix: str, state: Taken) -> None:
        """Writes a state beside a checkpoint.

        Args:
          prefix: path of the checkpoint without suffix.
          state: what `taken` returned at its step.
        """
        import tensorflow as tf

        if state.arrays:
            _write(prefix + self._arrays, state.arrays)
        elif tf.io.gfile.exists(prefix + self._arrays):
            tf.io.gfile.remove(prefix + self._arrays)
        _write(prefix + self._suffix, state.document)
        _remove_orphans(prefix, (self._suffix, self._arrays))

    # --- reading -----------------------------------------------------------------

    def restore(
        self, prefix: str, step: int, parse: Callable[[Any], Any] = lambda extra: None
    ) -> Any:
        """Reads the state that belongs to a checkpoint, if there is one.

        A file that cannot be used is reported and left alone: training goes on from
        the checkpoint with callbacks that begin anew.

        Args:
          prefix: path of the checkpoint without suffix.
          step: the global step of the session.
          parse: is given what `extra` returned when it was saved. What it raises
            says that the file is damaged.

        Returns:
          What `parse` returned, or None.
        """
        import tensorflow as tf

        path = prefix + self._suffix
        if not tf.io.gfile.exists(path):
            return None
        try:
            with tf.io.gfile.GFile(path, "rb") as file:
                document = json.loads(file.read().decode())
            if document["version"] != VERSION:
                raise ValueError(
                    f"it has version {document['version']}, expected {VERSION}"
                )
            if document["step"] != step:
                raise ValueError(
                    f"it belongs to step {document['step']}, the session is at {step}"
                )
            arrays = {}
            if tf.io.gfile.exists(prefix + self._arrays):
                with tf.io.gfile.GFile(prefix + self._arrays, "rb") as file:
                    loaded = np.load(io.BytesIO(file.read()), allow_pickle=False)
                    arrays = {k: loaded[k] for k in loaded.files}
            states = [
                (str(e["class"]), _attributes(e["state"], arrays))
                for e in document["callbacks"]
            ]
            extra = parse(state_codec.decode(document["loop"], arrays))
        except Exception as e:  # whatever a damaged file makes of itself
            logging.warning(
                "hookbridge: the state of callbacks in %s cannot be used (%s: %s). "
                "Training goes on from the checkpoint; callbacks begin anew.",
                path,
                type(e).__name__,
                e,
            )
            return None
        self._apply(states, path)
        return extra

    def _apply(self, states: list[tuple[str, dict[str, Any]]], path: str) -> None:
        left = list(self._callbacks)
        for name, state in states:
            target = next((c for c in left if type(c).__name__ == name), None)
            if target is None:
                if state:
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
            for attribute, value in state.items():
                try:
                    state_codec.put(target, attribute, value)
                except Exception as e:  # also what a property of a user's raises
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
                base.pop(attribute, None)  # to be saved again with the next checkpoint


def _attributes(state: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(state, dict):
        raise TypeError(f"a state is {state!r}, expected a dict")
    return {k: state_codec.decode(v, arrays) for k, v in state.items()}


def watch(
    saver: Any, session: Any, saved: Callable[[str, Callable[[], None], Any], None]
) -> tuple[int, Callable[[], None]]:
    """Calls `saved(prefix, again, session)` after each `saver.save`.

    The saver is the one in the collection `SAVERS`: that of the loop's
    `CheckpointSaverHook`.

    Args:
      saver: a `tf.compat.v1.train.Saver`.
      session: the raw session.
      saved: called on the thread that saves. `again()` writes the same checkpoint
        once more, with the session's present values, and tells nobody new. The
        session is the one that was saved: another one after a recovery.

    Returns:
      How many others watch the saver in this session, and what ends watching.
    """
    original = saver.save
    others, function = 0, original
    while function is not None:
        others += getattr(function, "session", None) is session
        function = getattr(function, "__wrapped__", None)
    watching = True

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        path = original(*args, **kwargs)
        if path and watching:
            again = functools.partial(original, *args, **kwargs)
            saved(path, again, args[0] if args else kwargs["sess"])
        return path

    save.session = session  # type: ignore[attr-defined]
    saver.save = save

    def end() -> None:
        nonlocal watching
        watching = False
        if saver.save is save:
            del saver.save
            if saver.save != original:  # that of another group
                saver.save = original

    return others, end


def _write(path: str, data: bytes) -> None:
    import tensorflow as tf

    # Aside first: a process that is killed leaves the old file or the new one.
    with tf.io.gfile.GFile(path + ".part", "wb") as file:
        file.write(data)
    tf.io.gfile.rename(path + ".part", path, overwrite=True)


def _remove_orphans(prefix: str, suffixes: Sequence[str]) -> None:
    """Removes states whose checkpoints the saver has removed."""
    import tensorflow as tf

    folder, _, name = prefix.rpartition("/")
    stem = name.rsplit("-", 1)[0]
    for suffix in suffixes:
        pattern = f"{folder}/{stem}-*{suffix}" if folder else f"{stem}-*{suffix}"
        for path in tf.io.gfile.glob(pattern):
            if not tf.io.gfile.exists(path.removesuffix(suffix) + ".index"):
                tf.io.gfile.remove(path)
