"""Errors of callbacks and validations that a session would take for something else.

A `MonitoredSession` ends cleanly, as at the end of its data, when a hook raises one of
`END_OF_DATA`. After one of `LOST_TASK` it makes a new session and trains again from the
last checkpoint. `Model.fit` ends with the error. So the callback's hook raises a
`GuestFailedError` from it, which a session does not catch.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from hookbridge import errors
from hookbridge.ground.protocols import Session
from hookbridge.ground.step_errors import END_OF_DATA, LOST_TASK
from hookbridge.ground.validation import Validation, ValidationReport

MISTAKEN = (*END_OF_DATA, *LOST_TASK)


def is_loss_of(session: object, error: BaseException) -> bool:
    """Return whether a call of the session has lost a task, so it has to recover."""
    if session is None or not isinstance(error, LOST_TASK):
        return False
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_locals.get("self") is session for frame in frames)


def error_of_guest(
    who: str, error: BaseException, advice: str
) -> errors.GuestFailedError:
    """Return the error to raise for one of `MISTAKEN`.

    Args:
      who: the method or argument that has raised it.
      error: what it has raised.
      advice: what to do if it is the end of data.
    """
    is_end = isinstance(error, END_OF_DATA)
    taken_for = (
        "the end of the training data and end as if all was well"
        if is_end
        else "a lost task and train again from the last checkpoint"
    )
    if not is_end:
        advice = "Catch the error there if the training is to go on."
    name, text = type(error).__name__, str(error)
    if text and "\n" not in text:  # else the traceback of `__cause__` has it
        name = f"{name}: {text.removesuffix('.')}"
    return errors.GuestFailedError(
        f"`{who}` raised {name}. A session would take that for {taken_for}. The run "
        f"ends with this error instead, as `Model.fit` ends with the guest's. {advice}",
        see="how a run ends",
    )


def validate(
    validation: Validation, session: Session, report: ValidationReport
) -> Mapping[str, float]:
    """Return what the user's `validation=` returns, whose error ends the run."""
    try:
        return validation.run(session, report)
    except MISTAKEN as e:
        if is_loss_of(session, e):
            raise
        raise error_of_guest(
            "validation=",
            e,
            "Its data must last for every validation: `repeat()` the dataset, or run "
            "`iterator.initializer` first in each.",
        ) from e
