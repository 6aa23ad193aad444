"""Keras's warning about callbacks that take longer than the batches."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

from absl import logging

from hookbridge.adapters.guests import kinds
from hookbridge.adapters.session_loop.delivery import Calls

_BATCHES = 5  # as many as Keras looks at
_BEGIN, _END = "on_train_batch_begin", "on_train_batch_end"


class BatchTimer:
    """Times the batch methods of callbacks for a few batches, then removes itself.

    Like Keras, it ignores the first batch and does nothing if all callbacks are Keras's
    own.
    """

    def __init__(self, calls: dict[str, Calls], left: Callable[[], None]) -> None:
        self._calls = calls
        self._left = left
        self._plain = {event: calls[event] for event in (_BEGIN, _END)}
        self._times: dict[str, list[float]] = {_BEGIN: [], _END: [], "batch": []}
        self._begun: float | None = None
        if any(map(_is_users, (m for c in self._plain.values() for m in c.methods))):
            calls[_BEGIN] = _TimedCalls(self._plain[_BEGIN], self._begin)
            calls[_END] = _TimedCalls(self._plain[_END], self._end)

    def _begin(self, call: Callable[[], None]) -> None:
        self._begun = perf_counter()
        self._note(_BEGIN, call)

    def _end(self, call: Callable[[], None]) -> None:
        if self._begun is not None:
            self._times["batch"].append(perf_counter() - self._begun)
        self._note(_END, call)
        if len(self._times[_END]) > _BATCHES:
            self._calls.update(self._plain)
            self._left()
            self._report()

    def _note(self, event: str, call: Callable[[], None]) -> None:
        start = perf_counter()
        call()
        self._times[event].append(perf_counter() - start)

    def _report(self) -> None:
        batch, begin, end = (
            statistics.fmean(self._times[name][1:]) for name in ("batch", _BEGIN, _END)
        )
        for event, seconds in ((_BEGIN, begin), (_END, end)):
            if seconds > batch:
                logging.warning(
                    "Callback method `%s` is slow compared to the batch time (batch "
                    "time: %.4fs vs `%s` time: %.4fs). Check your callbacks.",
                    event,
                    batch,
                    event,
                    seconds,
                )


class _TimedCalls(Calls):
    """The calls of one event, made by a timer that measures them."""

    __slots__ = ("_plain", "_timer")

    def __init__(
        self, plain: Calls, timer: Callable[[Callable[[], None]], None]
    ) -> None:
        self._plain = plain
        self._timer = timer

    def __bool__(self) -> bool:
        return True

    def __call__(self, *args: Any) -> None:
        self._timer(lambda: self._plain(*args))


def _is_users(method: Any) -> bool:
    return not kinds.is_of_keras(type(getattr(method, "__self__", None)))
