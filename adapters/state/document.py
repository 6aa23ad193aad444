"""The contents of a state's files: JSON, and the arrays that it refers to."""

from __future__ import annotations

import hashlib
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from hookbridge.adapters.state import codec, storage
from hookbridge.adapters.state.identity import Identity

VERSION = 3
# The oldest version that a release has written. Files of it and of all later ones
# load; tests/adapters/state/released/ keeps files of each.
OLDEST = 3
# Version -> what turns a document of this version into one of the next. A new version
# adds its predecessor here.
UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = (
    types.MappingProxyType({})
)
# JSON has counters and short lists, so a larger file is none of ours.
MOST_JSON_BYTES = 2**24
# The size limit of the arrays: these bytes, plus so many times the checkpoint's size.
_MOST_BYTES = 64 * 2**20
_TIMES_CHECKPOINT = 4


class Entry(NamedTuple):
    """The state of one callback: the values of its attributes, by their names."""

    identity: Identity
    state: dict[str, Any]
    # Whether the file has this state exactly as it was written: then a value may be of
    # another kind than the attribute has now.
    is_as_written: bool = False


class Document(NamedTuple):
    """The state of all callbacks of a process."""

    # The global step that it was taken at. It may differ from the step of the
    # checkpoint: other workers move the global step meanwhile.
    step: int
    entries: Sequence[Entry]
    loops: Sequence[Any]  # what the loops keep: a dict for each group of callbacks
    # Whether callbacks had not had all events of the checkpoint's step by then.
    is_in_step: bool = False


def writer(prefix: str, name: str, state: Document) -> Callable[[], None]:
    """Return a function that writes a process's state, as it is now, to a checkpoint.

    See `read`. It may be called later, on another thread.
    """
    arrays: dict[str, Any] = {}
    document: dict[str, Any] = {
        "version": VERSION,
        "step": state.step,
        "in_step": state.is_in_step,
        "callbacks": [
            {
                "class": entry.identity.kind,
                "key": entry.identity.key,
                "values": dict(entry.identity.values),
                "state": {k: codec.encode(v, arrays) for k, v in entry.state.items()},
            }
            for entry in state.entries
        ],
        "loops": [codec.encode(loop, arrays) for loop in state.loops],
    }
    path, data = "", b""
    if arrays:
        data = codec.to_bytes(arrays)
        document["arrays"] = hashlib.sha256(data).hexdigest()
        path = storage.arrays_path(prefix, name, document["arrays"])
    text = _as_json(document)
    while len(text) > MOST_JSON_BYTES:
        _leave_out_largest(document["callbacks"])
        text = _as_json(document)

    def write() -> None:
        if path and not tf.io.gfile.exists(path):
            storage.write(path, data)
        storage.write(storage.json_path(prefix, name), text)
        storage.remove_unused(prefix, name, keep=path)

    return write


def _as_json(document: dict[str, Any]) -> bytes:
    """Return the text of a document; each callback's state gets a digest."""
    for entry in document["callbacks"]:
        entry["digest"] = _digest(entry["state"], document)
    return json.dumps(document, indent=1).encode()


def _digest(state: dict[str, Any], document: dict[str, Any]) -> str:
    """Return the digest of a callback's state and of the arrays it refers to."""
    text = json.dumps([state, document.get("arrays")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _leave_out_largest(entries: Sequence[Any]) -> None:
    """Take out the largest value of all callbacks, and warn which one it is."""
    sizes = {
        (index, name): len(json.dumps(value))
        for index, entry in enumerate(entries)
        for name, value in entry["state"].items()
    }
    index, name = max(sizes, key=lambda key: sizes[key])
    entry = entries[index]
    del entry["state"][name]
    logging.warning(
        "hookbridge: `%s.%s` takes %d bytes as JSON. The limit is %d, so it is not "
        "saved and starts over after a restart. A NumPy array may be larger.",
        entry["class"],
        name,
        sizes[index, name],
        MOST_JSON_BYTES,
    )


def read(prefix: str, name: str) -> Document:
    """Read a state beside a checkpoint; a damaged file may raise anything."""
    path = storage.json_path(prefix, name)
    document = _newest(json.loads(storage.read(path, MOST_JSON_BYTES).decode()))
    arrays = _arrays(document, prefix, name)

    def decode(value: object) -> Any:
        return codec.decode(value, arrays)

    return Document(
        int(document["step"]),
        [_entry(entry, decode, document) for entry in document["callbacks"]],
        [decode(loop) for loop in document["loops"]],
        bool(document.get("in_step")),
    )


def _newest(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of any version that was released, in the form of the newest."""
    version = int(document["version"])
    if version > VERSION:
        raise ValueError(
            f"it has version {version}, written by a newer hookbridge; this one reads "
            f"versions {OLDEST} to {VERSION}. Install the newer one to go on with it"
        )
    if version < OLDEST:
        raise ValueError(
            f"it has version {version}, which no release has written; expected "
            f"{OLDEST} to {VERSION}"
        )
    for old_version in range(version, VERSION):
        document = UPGRADES[old_version](document)
    return document


def _entry(entry: Any, decode: Callable[[Any], Any], document: Any) -> Entry:
    """Return the state of one callback; raise if it has not the form of one."""
    state, values, key = entry["state"], entry.get("values", {}), entry.get("key")
    if not isinstance(state, dict) or not isinstance(values, dict):
        raise TypeError(f"a state is {state!r} of {values!r}, expected two dicts")
    identity = Identity(str(entry["class"]), None if key is None else str(key), values)
    values_now = {str(k): decode(v) for k, v in state.items()}
    return Entry(identity, values_now, entry.get("digest") == _digest(state, document))


def _arrays(document: Any, prefix: str, name: str) -> dict[str, Any]:
    """Return the arrays that a document refers to."""
    if "arrays" not in document:
        return {}
    most = _MOST_BYTES + _TIMES_CHECKPOINT * storage.checkpoint_bytes(prefix)
    digest = document["arrays"]
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"{digest!r} is not a digest of arrays")
    data = storage.read(storage.arrays_path(prefix, name, digest), most)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("its arrays belong to another state")
    return codec.from_bytes(data)
