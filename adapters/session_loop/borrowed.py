"""A callback that an evaluation borrows from a training that is under way.

`train_and_evaluate` evaluates in mid-training, with a session and a model of its own.
The callbacks of that evaluation may be those of the training, wrapped by the same
`as_hooks` call or by another one. `Model.fit` evaluates on the model that it trains, so
nothing changes for a callback there. Here the callback gets its old model, and what it
derived from it, back after the evaluation.
"""

from __future__ import annotations

from typing import Any

_MISSING = object()


class BorrowedCallback:
    """What `set_model` and `set_params` of an evaluation change in a callback.

    They change its model, its parameters, and what it derives from them, such as the
    writers and step counters of TensorBoard.
    """

    def __init__(self, callback: Any) -> None:
        self._callback = callback
        self._before = dict(vars(callback))
        self._changed: list[str] = []

    def taken(self) -> None:
        """Notes what has changed; called after `set_model` and `set_params`."""
        now = vars(self._callback)
        before = self._before
        self._changed = [
            name
            for name in {**before, **now}
            if now.get(name, _MISSING) is not before.get(name, _MISSING)
        ]

    def give_back(self) -> None:
        """Undoes these changes after the evaluation; changes by its events stay."""
        now = vars(self._callback)
        for name in self._changed:
            value = self._before.get(name, _MISSING)
            if value is not _MISSING:
                now[name] = value
            else:
                now.pop(name, None)
