"""What the callbacks of a definition file find beside Keras's own arguments.

They are called as ElasticDL calls them: the batch of `on_train_batch_begin` is the
version of the model, the number of updates that it has had, and `logs` say where the
batch is and how large, the metrics of an evaluation, and the predictions of a batch.
An entry that a callback reads and that is not there is logged once: a callback that
returns early would do nothing, without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from absl import logging

from hookbridge.callbacks.ready_made import metrics_of, step_of
from hookbridge.lifecycle import overrides
from hookbridge.names import nearest
from hookbridge.patching import InstanceMethods

# Callbacks of these packages know Keras's arguments alone.
_STOCK = ("keras", "tf_keras", "tensorflow", "hookbridge")
Event = Callable[..., Any]


def add_definition_logs(callback: Any) -> None:
    """Lets a user's callback see the arguments of a definition file from now on."""
    if type(callback).__module__.partition(".")[0] in _STOCK:
        return
    methods, missed = {}, _Missed(type(callback).__name__)
    for name, make in _EVENTS.items():
        method = getattr(callback, name)
        # A list of callbacks, unlike a function, gives the same ones for each mode.
        is_ours = getattr(method, "__module__", "") == __name__
        if overrides.overrides(callback, name) and not is_ours:
            methods[name] = make(callback, _watched(method, name, missed))
    InstanceMethods(callback, methods).install()


class _Missed:
    """Logs each entry that a callback reads and its loop does not give, once."""

    def __init__(self, callback: str) -> None:
        self._callback = callback
        self._keys: set[Any] = set()

    def note(self, key: Any, event: str, given: Iterable[Any]) -> None:
        """A callback has read an entry in an event that has other entries."""
        if key in self._keys:
            return
        self._keys.add(key)
        names = [str(name) for name in given]
        near = nearest(str(key), names)
        logging.warning(
            'hookbridge: `%s` reads logs["%s"] in `%s`, which this loop does not give '
            "there. It gives: %s%s.",
            self._callback,
            key,
            event,
            ", ".join(names) or "nothing",
            f' (nearest: "{near[0]}")' if near else "",
        )


class _Logs(dict[Any, Any]):
    """Logs that tell which entry was read and is not there."""

    def __init__(self, logs: Mapping[Any, Any], event: str, missed: _Missed) -> None:
        super().__init__(
            (key, _Logs(value, event, missed) if key == "metrics" else value)
            for key, value in logs.items()
        )
        self._event, self._missed = event, missed

    def get(self, key: Any, default: Any = None) -> Any:
        if default is None and key not in self:
            self._missed.note(key, self._event, self)
        return super().get(key, default)


def _watched(method: Event, event: str, missed: _Missed) -> Event:
    """The method, called with `_Logs`; what it adds to them reaches the caller's."""

    def called(*args: Any, logs: Any = None) -> Any:
        *place, logs = args if len(args) == _ARGUMENTS[event] else (*args, logs)
        if logs is None:
            return method(*place, None)
        seen = _Logs(logs, event, missed)
        result = method(*place, seen)
        if isinstance(logs, dict):
            logs.clear()
            logs.update(seen)
        return result

    return called


def _as_it_is(callback: Any, method: Event) -> Event:
    del callback
    return method


def _train_batch_begin(callback: Any, method: Event) -> Event:
    def called(batch: int, logs: Any = None) -> Any:
        version = step_of(callback.model.optimizer)
        size = (callback.params or {}).get("batch_size")
        return method(version, {"batch": batch, "size": size, **(logs or {})})

    return called


def _test_end(callback: Any, method: Event) -> Event:
    def called(logs: Any = None) -> Any:
        return method({**(logs or {}), "metrics": metrics_of(logs)})

    return called


def _predict_batch_end(callback: Any, method: Event) -> Event:
    def called(batch: int, logs: Any = None) -> Any:
        outputs = (logs or {}).get("outputs")
        if isinstance(outputs, Mapping) and "predictions" in outputs:
            outputs = outputs["predictions"]
        return method(batch, {**(logs or {}), "predictions": outputs})

    return called


_EVENTS: dict[str, Callable[[Any, Event], Event]] = {
    **dict.fromkeys(
        (
            "on_train_batch_end",
            "on_test_batch_end",
            "on_epoch_end",
            "on_train_end",
            "on_predict_end",
        ),
        _as_it_is,
    ),
    "on_train_batch_begin": _train_batch_begin,
    "on_test_end": _test_end,
    "on_predict_batch_end": _predict_batch_end,
}
# How many arguments an event has, with its logs.
_ARGUMENTS = {name: 2 if "batch" in name or "epoch" in name else 1 for name in _EVENTS}
