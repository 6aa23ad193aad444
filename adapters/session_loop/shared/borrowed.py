"""A callback that an evaluation borrows from a training that is under way.

`train_and_evaluate` evaluates in mid-training, with a session and a model of its own,
and maybe with callbacks of the training, from whichever `as_hooks` call. After the
evaluation they get their model, and what they derived from it, back.
"""

from __future__ import annotations

from typing import Any, Protocol

from hookbridge.adapters.session_state.run_state import states_of
from hookbridge.adapters.session_state.session_states import SessionStates
from hookbridge.ground.patching import MISSING
from hookbridge.ground.protocols import Callback


class Lender(Protocol):
    """A training run whose callbacks an evaluation borrows."""

    started: bool
    finished: bool

    def stop_from_within(self) -> None:
        """End the training; called by the evaluation."""


class BorrowedCallbacks:
    """The callbacks of trainings that take part in one evaluation."""

    def __init__(self) -> None:
        # Each callback with its attributes before, and with those that have changed.
        self._before: list[tuple[Callback, dict[str, Any]]] = []
        self._changed: list[tuple[Callback, dict[str, Any]]] = []
        self._lenders: list[Lender] = []
        self._states: dict[SessionStates, None] = {}  # keep the state of the callbacks

    def add(self, callback: Callback) -> None:
        """Borrow a callback; one that no training has needs nothing."""
        states, lender = states_of(callback), _unfinished_run(callback)
        if states is not None:
            self._states[states] = None
        if lender is not None:
            self._lenders.append(lender)
            self._before.append((callback, dict(vars(callback))))

    def note_changes(self) -> None:
        """Note what `set_model` and `set_params` of all have changed.

        Beside the model and the parameters of a callback, that is what it derives from
        them, such as the writers of TensorBoard.
        """
        for callback, before in self._before:
            now = vars(callback)
            changed = {
                name: before.get(name, MISSING)
                for name in {**before, **now}
                if now.get(name, MISSING) is not before.get(name, MISSING)
            }
            self._changed.append((callback, changed))

    def stop_lenders(self) -> None:
        """Stop the trainings whose callbacks the evaluation has borrowed."""
        for lender in self._lenders:
            lender.stop_from_within()

    def give_back(self) -> None:
        """Undo these changes: the evaluation is over; changes by its events stay."""
        for callback, changed in self._changed:
            now = vars(callback)
            for name, value in changed.items():
                if value is MISSING:
                    now.pop(name, None)
                else:
                    now[name] = value
        for states in self._states:
            states.resave_after_evaluation()


def _unfinished_run(callback: Callback) -> Lender | None:
    """Return the unfinished run that a callback takes part in, or None."""
    link: Any = getattr(getattr(callback, "model", None), "live_link", None)
    run: Lender | None = None if link is None else link.run()
    return run if run is not None and run.started and not run.finished else None
