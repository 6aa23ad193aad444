"""A callback that an evaluation borrows from a training that is under way.

`train_and_evaluate` evaluates in mid-training, with a session and a model of its own,
and maybe with callbacks of the training, from whichever `as_hooks` call. After the
evaluation they get their model, and what they derived from it, back.
"""

from __future__ import annotations

from hookbridge.ground.protocols import Callback

_MISSING = object()


class BorrowedCallback:
    """What `set_model` and `set_params` of an evaluation change in a callback.

    Beside its model and parameters, that is what it derives from them, such as the
    writers of TensorBoard.
    """

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._before = dict(vars(callback))
        self._changed: list[str] = []

    def note_changes(self) -> None:
        """Note what has changed; called after `set_model` and `set_params`."""
        now = vars(self._callback)
        before = self._before
        self._changed = [
            name
            for name in {**before, **now}
            if now.get(name, _MISSING) is not before.get(name, _MISSING)
        ]

    def give_back(self) -> None:
        """Undo these changes after the evaluation; changes by its events stay."""
        now = vars(self._callback)
        for name in self._changed:
            value = self._before.get(name, _MISSING)
            if value is not _MISSING:
                now[name] = value
            else:
                now.pop(name, None)
