"""A callback that writes down each event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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


def noting(keras: Any, note: Any, events: Iterable[str] = EVENTS) -> Any:
    """A callback that calls `note(callback, event, *arguments)` in each event."""

    def method(event: str) -> Any:
        return lambda self, *args, **kwargs: note(self, event, *args)

    return type("Notes", (keras.callbacks.Callback,), {e: method(e) for e in events})()


def recorder(
    keras: Any,
    log: list[Any],
    name: str,
    *,
    stop: str | None = None,
    error: tuple[str, type[BaseException]] | None = None,
) -> Any:
    """A callback that writes down each event.

    The first call of the event `stop` stops training; that of `error[0]` raises.
    """
    seen: Counter[str] = Counter()

    def method(event: str) -> Any:
        def call(self: Any, *args: Any) -> None:
            logs = args[-1]
            index = args[0] if len(args) > 1 else None
            log.append(
                (
                    event,
                    name,
                    index,
                    int(np.asarray(self.model.optimizer.iterations)),
                    bool(self.model.stop_training),
                    list(logs),
                    sorted({type(v).__name__ for v in logs.values()}),
                )
            )
            seen[event] += 1
            if error is not None and error[0] == event and seen[event] == 1:
                raise error[1](f"from {event}")
            if stop == event and seen[event] == 1:
                self.model.stop_training = True

        if "epoch" in event or "batch" in event:
            return lambda self, index, logs=None: call(self, index, logs)
        return lambda self, logs=None: call(self, logs)

    kind = type("Recorder", (keras.callbacks.Callback,), {e: method(e) for e in EVENTS})
    return kind()
