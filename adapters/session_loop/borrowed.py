"""A callback that an evaluation borrows from a training that is under way.

`train_and_evaluate` evaluates in mid-training, with a session and a model of its own,
and maybe with callbacks of the training, from whichever `as_hooks` call. After the
evaluation they get their model, and what they derived from it, back.
"""

from __future__ import annotations

from typing import Any, Protocol

from hookbridge.adapters.session_state.graph_keeper import GraphKeeper
from hookbridge.adapters.session_state.run_state import keeper_of
from hookbridge.ground.protocols import Callback

_MISSING = object()


class Lender(Protocol):
    """A training run whose callbacks an evaluation borrows."""

    started: bool
    finished: bool

    def stop_from_within(self) -> None:
        """End the training; called by the evaluation."""


class BorrowedCallbacks:
    """The callbacks of trainings that take part in one evaluation."""

    def __init__(self) -> None:
        self._callbacks: list[BorrowedCallback] = []
        self._lenders: list[Lender] = []
        self._keepers: dict[GraphKeeper, None] = {}  # keep the state of the callbacks

    def add(self, callback: Callback) -> None:
        """Borrow a callback; one that no training has needs nothing."""
        keeper, lender = keeper_of(callback), _unfinished_run(callback)
        if keeper is not None:
            self._keepers[keeper] = None
        if lender is not None:
            self._lenders.append(lender)
            self._callbacks.append(BorrowedCallback(callback))

    def note_changes(self) -> None:
        """Note what `set_model` and `set_params` of all have changed."""
        for callback in self._callbacks:
            callback.note_changes()

    def stop_lenders(self) -> None:
        """Stop the trainings whose callbacks the evaluation has borrowed."""
        for lender in self._lenders:
            lender.stop_from_within()

    def give_back(self) -> None:
        """Give the callbacks back: the evaluation is over."""
        for callback in self._callbacks:
            callback.give_back()
        for keeper in self._keepers:
            keeper.resave_after_evaluation()


def _unfinished_run(callback: Callback) -> Lender | None:
    """Return the unfinished run that a callback takes part in, or None."""
    link: Any = getattr(getattr(callback, "model", None), "live_link", None)
    run: Lender | None = link.run() if link is not None and link.run else None
    return run if run is not None and run.started and not run.finished else None


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
