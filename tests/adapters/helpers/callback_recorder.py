"""A callback that writes down each event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

EVENTS = (
    "on_train_begin",
    "on_epoch_begin",
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_test_begin",
    "on_test_batch_begin",
    "on_test_batch_end",
    "on_test_end",
    "on_epoch_end",
    "on_train_end",
)
_PREDICT = ("begin", "batch_begin", "batch_end", "end")
PREDICT_EVENTS = tuple(f"on_predict_{event}" for event in _PREDICT)


def callback_of(keras: Any, **events: Any) -> Any:
    """A callback of functions: `callback_of(keras, on_epoch_end=lambda self, *_: 1)`.

    The functions are methods of its class: a Keras sees which events it has.
    """
    return type("Functions", (keras.callbacks.Callback,), events)()


def noting(keras: Any, note: Any, events: Iterable[str] = EVENTS) -> Any:
    """A callback that calls `note(callback, event, *arguments)` in each event."""

    def method(event: str) -> Any:
        if event.startswith("set_"):
            return lambda self, value: note(self, event, value)
        if "epoch" in event or "batch" in event:
            return lambda self, index, logs=None: note(self, event, index, logs)
        return lambda self, logs=None: note(self, event, logs)

    return callback_of(keras, **{e: method(e) for e in events})


def step_events(keras: Any, log: list[str]) -> Any:
    """Writes down batches and epochs, with the global step at their ends."""

    def note(callback: Any, event: str, index: int, logs: Any = None) -> None:
        what = "" if "batch" in event else "epoch "
        at = f" at {int(np.asarray(callback.model.optimizer.iterations))}"
        begins = event.endswith("begin")
        log.append(f"begin {index}" if begins else f"{what}end {index}{at}")

    return noting(keras, note, (*EVENTS[2:4], "on_epoch_end"))


def recorder(
    keras: Any,
    log: list[Any],
    name: str,
    *,
    stop_in: str | None = None,
    raise_in: str | None = None,
    error: Callable[[], BaseException] = ValueError,
    values: list[Any] | None = None,
) -> Any:
    """A callback that writes down all that `Model.fit` gives it, `values` apart.

    The first call of `stop_in` stops training; that of `raise_in` raises.
    """
    seen: Counter[str] = Counter()

    def note(self: Any, event: str, *args: Any) -> None:
        if event.startswith("set_"):
            getattr(keras.callbacks.Callback, event)(self, args[0])
            log.append([event, name])
            if event == "set_params":
                shapes = [weight.shape for weight in self.model.get_weights()]
                log[-1] += [dict(args[0]), shapes]
            return
        seen[event] += 1
        index, logs = args if len(args) > 1 else (None, args[-1])
        is_dict = isinstance(logs, dict)
        if values is not None and is_dict:
            values.extend(
                value for key in sorted(logs) for value in np.ravel(logs[key])
            )
        log.append(
            [
                event,
                name,
                index,
                int(np.asarray(self.model.optimizer.iterations)),
                bool(self.model.stop_training),
                sorted(logs) if is_dict else type(logs).__name__,
                sorted({type(v).__name__ for v in logs.values()}) if is_dict else None,
            ]
        )
        if raise_in == event and seen[event] == 1:
            log.append(["RAISE", name, event])
            raise error()
        if stop_in == event and seen[event] == 1:
            self.model.stop_training = True
            log.append(["STOP", name, event])

    return noting(keras, note, ("set_model", "set_params", *EVENTS, *PREDICT_EVENTS))


COUNTED = {
    "on_train_begin": "begins",
    "on_train_batch_end": "batches",
    "on_epoch_end": "epochs",
    "on_train_end": "ends",
}


def counting(keras: Any) -> Any:
    """A callback that counts in attributes, which are stored beside checkpoints."""

    def note(self: Any, event: str, *args: Any) -> None:
        name = COUNTED[event]
        setattr(self, name, getattr(self, name) + 1)

    made = noting(keras, note, COUNTED)
    vars(made).update(dict.fromkeys(COUNTED.values(), 0))
    return made
