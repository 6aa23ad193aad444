"""What the trace scenarios record, and how it is compared with the recording.

`data/recorded.json` holds the events of 111 scenarios, recorded on real
`tf.compat.v1.train.MonitoredTrainingSession`s of TF 1.15, 2.15 and 2.21, which
agree. An event is `{"e": event, "h": hook, "gs": global step, ...}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.errors import HookBridgeError

v1 = tf.compat.v1

Event = dict[str, Any]


def _read(name: str) -> dict[str, list[Event]]:
    path = Path(__file__).parent / "data" / name
    return json.loads(path.read_text("utf-8"))  # type: ignore[no-any-return]


RECORDED = _read("recorded.json")
# The events of scenarios that are documented to differ under `fit`.
DIFFERENT_EVENTS = _read("different.json")


def type_name(value: Any) -> str:
    """The name of a type; a session of any kind is a `Session`."""
    return "Session" if isinstance(value, v1.Session) else type(value).__name__


def clean(text: Any, root: Path | None = None) -> str:
    """`text` without what differs from one run to the next."""
    result = str(text)
    if root is not None:
        result = re.sub(re.escape(str(root)) + r"/\d+", "<TMP>", result)
    result = re.sub(r"0x[0-9a-f]+", "0x..", result)
    return re.sub(r"dtype=(float|int)(\d+)(_ref)?", r"dtype=\1\2", result)


def describe_exception(error: BaseException, root: Path | None = None) -> Event:
    """The type and the first line of an exception.

    One of hookbridge's has `is_a` too: the built-in types that an `except` of
    somebody who knows TensorFlow's own error names.
    """
    lines = clean(error, root).strip().split("\n")
    event: Event = {"type": type(error).__name__, "msg": lines[0][:300]}
    if isinstance(error, HookBridgeError):
        bases = [each for each in type(error).__mro__ if each.__module__ == "builtins"]
        event["is_a"] = [each.__name__ for each in bases]
    return event


def describe(value: Any) -> Any:
    """Type and value of a fetched structure."""
    if value is None:
        return None
    if isinstance(value, v1.SparseTensorValue):
        parts = [value.indices, value.values, value.dense_shape]
        return {"t": "SparseTensorValue", "v": [describe(p) for p in parts]}
    if isinstance(value, Mapping):
        items = {str(k): describe(v) for k, v in value.items()}
        return {"t": type(value).__name__, "v": items}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = {k: describe(getattr(value, k)) for k in value._fields}
        return {"t": f"namedtuple:{type(value).__name__}", "v": items}
    if isinstance(value, (list, tuple)):
        return {"t": type(value).__name__, "v": [describe(v) for v in value]}
    if isinstance(value, np.ndarray):
        return {"t": "ndarray", "d": str(value.dtype), "v": value.tolist()}
    if isinstance(value, np.generic):
        return {"t": type(value).__name__, "v": value.item()}
    return {"t": type(value).__name__, "v": clean(value)}


def describe_options(options: Any) -> str:
    """A `RunOptions` on one line."""
    return re.sub(r"\s+", " ", str(options)).strip()


def as_json(log: list[Event]) -> list[Event]:
    """The events as they come back from a file."""
    return json.loads(json.dumps(log))  # type: ignore[no-any-return]


def lines(log: list[Event]) -> list[str]:
    """One line for each event, so that a failing comparison is readable."""
    return [json.dumps(event) for event in as_json(log)]


def comparable(recorded: list[Event], seen: list[Event]) -> tuple[list[str], list[str]]:
    """Both logs as lines; our message is equal if it begins with theirs.

    Our error is equal if an `except` of TensorFlow's type catches it.
    """
    ours = [dict(event) for event in as_json(seen)]
    caught = [event.pop("is_a", []) for event in ours]
    for theirs, event, types in zip(recorded, ours, caught, strict=False):
        if theirs.get("type") in types:
            event["type"] = theirs["type"]
        known, message = str(theirs.get("msg", "")), str(event.get("msg", ""))
        # TensorFlow's `KeyError` shows its text in quotes, ours does not.
        start = known.removesuffix(")").replace('"', "")
        if start and message.replace('"', "").startswith(start):
            event["msg"] = known
    return lines(recorded), lines(ours)
