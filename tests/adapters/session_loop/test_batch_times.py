"""Keras 2 warns of slow batch methods, and a session does in the same words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from callback_loops import fit, session_loop
from callback_recorder import callback_of
from hook_fetching import hook_of

import hookbridge as hb


class Clock:
    """A time that passes only where a guest says so."""

    now = 1e9

    def __call__(self) -> float:
        return self.now

    def passing(self, seconds: float) -> Callable[..., None]:
        def wait(*_: Any, **__: Any) -> None:
            self.now += seconds

        return wait


# The seconds of `on_train_batch_begin`, of the batch and of `on_train_batch_end`, and
# the events of which Keras 2 warns.
CASES = {
    "slow end": (0.0, 1.0, 3.0, ["on_train_batch_end"]),
    "slow begin": (3.0, 1.0, 0.0, ["on_train_batch_begin"]),
    "both": (2.0, 1.0, 3.0, ["on_train_batch_begin", "on_train_batch_end"]),
    "slow batch": (1.0, 2.0, 1.0, []),
}


@pytest.mark.parametrize("case", [*CASES, "a class of Keras", "only the end"])
def test_a_session_warns_where_fit_does(
    case: str, keras: Any, monkeypatch: pytest.MonkeyPatch, absl_records: Any
) -> None:
    begin, batch, end, events = CASES.get(case, CASES["slow end"])
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)

    def guests() -> list[Any]:
        methods = {"on_train_batch_end": clock.passing(end)}
        if case != "only the end":
            methods["on_train_batch_begin"] = clock.passing(begin)
        callback = callback_of(keras, **methods)
        if case == "a class of Keras":
            type(callback).__name__ = "EarlyStopping"
            return [callback]
        return [hook_of(after_run=clock.passing(batch)), callback]

    def messages() -> list[str]:
        return [record.getMessage() for record in absl_records("Callback method `")]

    native = [*hb.as_callbacks(guests())]
    fit(keras, native, epochs=3, validate=False)
    of_fit = messages()
    session_loop(guests(), epochs=3, validate=False)
    of_session = messages()[len(of_fit) :]
    is_keras2 = str(keras.__version__).startswith("2")
    expected = events if is_keras2 and case != "a class of Keras" else []
    assert [line.split("`")[1] for line in of_fit] == expected
    assert of_session == of_fit
