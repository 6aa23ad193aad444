"""Keras's warning about callbacks that take longer than a batch."""

from __future__ import annotations

from typing import Any

import pytest
from callback_loops import session_loop

from hookbridge.adapters.session_loop import slow

WARNING = "Callback method `{}` is slow compared to the batch time"


class Clock:
    """Advances at each reading; callbacks advance it to seem slow."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(slow, "perf_counter", clock)
    return clock


def _taking(keras: Any, clock: Clock, seconds: float, *events: str) -> Any:
    class Takes(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        calls = 0

    def take(self: Any, batch: int, logs: Any = None) -> None:
        self.calls += 1
        clock.now += seconds

    for event in events:
        setattr(Takes, event, take)
    return Takes()


@pytest.mark.parametrize("event", ["on_train_batch_end", "on_batch_end"])
def test_slow_end(
    keras: Any, clock: Clock, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    guest = _taking(keras, clock, 9.0, event)
    session_loop([guest], epochs=3)
    assert guest.calls == 9  # timing loses no call
    assert caplog.text.count(WARNING.format("on_train_batch_end")) == 1
    assert WARNING.format("on_train_batch_begin") not in caplog.text


def test_fast_methods_few_batches_and_epochs(
    keras: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    both = ("on_train_batch_begin", "on_train_batch_end")
    fast = _taking(keras, clock, 0.01, *both)
    session_loop([fast], epochs=3)
    assert fast.calls == 18
    session_loop([_taking(keras, clock, 9.0, "on_train_batch_end")], epochs=1)
    session_loop([_taking(keras, clock, 9.0, "on_epoch_end")], epochs=9)
    assert "is slow compared" not in caplog.text
