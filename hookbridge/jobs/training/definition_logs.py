"""What the callbacks of a definition file find beside Keras's own arguments.

They are called as ElasticDL calls them: the batch of `on_train_batch_begin` is the
version of the model, the number of updates that it has had, and `logs` say where the
batch is and how large, the metrics of an evaluation, and the predictions of a batch.
An entry that a callback reads and that is not there is logged once: a callback that
returns early would do nothing, without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from absl import logging

from hookbridge.adapters.keras_model.optimizers import steps_counted
from hookbridge.ground.lifecycle import overrides
from hookbridge.ground.patching import Patches
from hookbridge.ground.protocols import Callback, Logs
from hookbridge.jobs.callbacks.ready_made import metrics_of

# Callbacks of these packages know Keras's arguments alone.
_STOCK = (*overrides.FRAMEWORKS, "hookbridge")
Place = list[Any]  # the epoch or the batch
Entries = Mapping[str, Any]
Arguments = tuple[Place, Entries]


def add_definition_logs(callback: Callback) -> None:
    """Let a user's callback see the arguments of a definition file from now on."""
    if type(callback).__module__.partition(".")[0] in _STOCK:
        return
    methods, missed = {}, set[Any]()
    for name in _EVENTS:
        # A list of callbacks, unlike a function, gives the same ones for each mode.
        is_ours = getattr(getattr(callback, name), "__module__", "") == __name__
        if overrides.overrides(callback, name) and not is_ours:
            methods[name] = _watched(callback, name, missed)
    Patches(callback, methods).install()


class _Logs(dict[Any, Any]):
    """Logs that tell, once for each entry, which one was read and is not there."""

    def __init__(self, logs: Mapping[Any, Any], place: str, missed: set[Any]) -> None:
        super().__init__(
            (key, _Logs(value, place, missed) if key == "metrics" else value)
            for key, value in logs.items()
        )
        self._place, self._missed = place, missed

    def get(self, key: Any, default: Any = None) -> Any:
        if default is None and key not in self and key not in self._missed:
            self._missed.add(key)
            logging.warning(
                "hookbridge: %s, but this loop does not provide it there. It "
                "provides: %s.",
                self._place.format(key),
                ", ".join(map(str, self)) or "nothing",
            )
        return super().get(key, default)


def _watched(callback: Callback, event: str, missed: set[Any]) -> Callable[..., Any]:
    """Return the method, called with `_Logs`.

    What it adds to them reaches the caller's.
    """
    method, more = getattr(callback, event), _EVENTS[event]
    arguments = 2 if "batch" in event or "epoch" in event else 1  # with its logs

    def called(*args: Any, logs: Logs = None) -> Any:
        *positional, logs = args if len(args) == arguments else (*args, logs)
        if more is not None:
            positional, logs = more(callback, positional, logs or {})
        if logs is None:
            return method(*positional, None)
        name = type(callback).__name__
        spied = _Logs(logs, f'`{name}` reads logs["{{}}"] in `{event}`', missed)
        result = method(*positional, spied)
        if isinstance(logs, dict):
            logs.clear()
            logs.update(spied)
        return result

    return called


def _train_batch_begin(callback: Callback, place: Place, logs: Entries) -> Arguments:
    size = (callback.params or {}).get("batch_size")
    return [steps_counted(callback.model)], {"batch": place[0], "size": size, **logs}


def _test_end(callback: Callback, place: Place, logs: Entries) -> Arguments:
    return place, {**logs, "metrics": metrics_of(logs)}


def _predict_batch_end(callback: Callback, place: Place, logs: Entries) -> Arguments:
    outputs = logs.get("outputs")
    if isinstance(outputs, Mapping) and "predictions" in outputs:
        outputs = outputs["predictions"]
    return place, {**logs, "predictions": outputs}


# Event -> what makes its other arguments and its logs, where they are not Keras's own.
_EVENTS: dict[str, Callable[[Any, Place, Entries], Arguments] | None] = {
    "on_train_batch_begin": _train_batch_begin,
    "on_train_batch_end": None,
    "on_test_batch_end": None,
    "on_epoch_end": None,
    "on_train_end": None,
    "on_test_end": _test_end,
    "on_predict_batch_end": _predict_batch_end,
    "on_predict_end": None,
}
