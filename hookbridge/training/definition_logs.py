"""What the callbacks of a definition file find beside Keras's own arguments.

They are called as ElasticDL calls them: the batch of `on_train_batch_begin` is the
version of the model, the number of updates that it has had, and `logs` say where the
batch is and how large, the metrics of an evaluation, and the predictions of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookbridge.callbacks.ready_made import metrics_of, step_of
from hookbridge.lifecycle import overrides
from hookbridge.patching import InstanceMethods

# Callbacks of these packages know Keras's arguments alone.
_STOCK = ("keras", "tf_keras", "tensorflow", "hookbridge")
Event = Callable[..., Any]


def add_definition_logs(callback: Any) -> None:
    """Lets a user's callback see the arguments of a definition file from now on."""
    if type(callback).__module__.partition(".")[0] in _STOCK:
        return
    methods = {}
    for name, make in _EVENTS.items():
        method = getattr(callback, name)
        # A list of callbacks, unlike a function, gives the same ones for each mode.
        is_ours = getattr(method, "__module__", "") == __name__
        if overrides.overrides(callback, name) and not is_ours:
            methods[name] = make(callback, method)
    InstanceMethods(callback, methods).install()


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


_EVENTS = {
    "on_train_batch_begin": _train_batch_begin,
    "on_test_end": _test_end,
    "on_predict_batch_end": _predict_batch_end,
}
