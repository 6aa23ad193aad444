"""One line that shows the progress of either loop."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from hookbridge import errors
from hookbridge.callbacks.progress_line import Standing, progress_line
from hookbridge.callbacks.ready_made import ReadyMade

TERMINAL_SECS, FILE_SECS = 0.2, 10.0
_CLEAR = "\r\x1b[K"


class Progress(ReadyMade):
    """Prints epoch, step, loss, metrics, examples per second, and the time left.

    On a terminal it rewrites one line in place. Into a file or a pipe it prints plain
    lines, and always the first and the last one of each loop. It shows training,
    evaluation and prediction, in a session and in `fit`; a validation within a training
    adds its `val_` values. Values are read only when a line is printed, so the steps
    between cost nothing. Its role is `"chief"`.

    Args:
      batch_size: examples in a step, for examples per second; by default the entry of
        `params`, which `hookbridge train` gives. Without it, it shows steps per second.
      last_step: the global step at which the training ends, for the time left. Give it
        if the loop does not know it, as in a session with a `StopAtStepHook`.
      every_secs: the least time between two lines, in seconds; by default 0.2 on a
        terminal and 10 elsewhere.
      stream: where lines go; by default `sys.stderr`.
      clock: returns seconds as a float; a test gives its own. It is called at least
        once after each step, on the thread of the loop.

    Raises:
      errors.InvalidArgumentError: a number is not above 0.
    """

    # A session without `steps_per_epoch` has one endless epoch, which is enough here.
    epochs_are_optional = True
    # Keras 2: values are read when a line is printed, and not in each step.
    _supports_tf_logs = True

    def __init__(
        self,
        *,
        batch_size: int | None = None,
        last_step: int | None = None,
        every_secs: float | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given = {"batch_size": batch_size, "last_step": last_step}
        for name, number in {**given, "every_secs": every_secs}.items():
            if number is not None and not number > 0:
                raise errors.InvalidArgumentError(
                    f"Received {name}={number!r}; expected a number above 0."
                )
        super().__init__("chief")
        self._batch_size = batch_size
        self._last_step = last_step
        self._printer = _Printer(stream, every_secs, clock)
        self._run: _Run | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """A training begins, or goes on."""
        self._run = None
        self._begin("train", self.global_step())

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Batches are counted from 0 again."""
        if self._run is not None:
            self._run.begin_epoch(epoch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A step, or several of one execution, has run."""
        self._step("train", batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """The values of an epoch stay on the line until the next step."""
        if self._run is not None:
            self._run.keep(logs)
            self._show()

    def on_train_end(self, logs: Any = None) -> None:
        """The training ended well."""
        self._end("train", logs)

    def on_test_begin(self, logs: Any = None) -> None:
        """An evaluation begins; one within a training is its validation."""
        self._begin("evaluate", 0)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """A batch of the evaluation has run."""
        self._step("evaluate", batch, logs)

    def on_test_end(self, logs: Any = None) -> None:
        """The evaluation has ended."""
        self._end("evaluate", logs)

    def on_predict_begin(self, logs: Any = None) -> None:
        """A prediction begins."""
        self._begin("predict", 0)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """A batch of the prediction has run."""
        self._step("predict", batch, None)

    def on_predict_end(self, logs: Any = None) -> None:
        """The prediction has ended."""
        self._end("predict", None)

    def _begin(self, loop: str, first: int) -> None:
        if self._run is not None and self._run.loop == "train":
            return  # an evaluation, or a prediction, within a training
        params = self.params or {}
        size = self._batch_size or params.get("batch_size")
        last = self._last_step if loop == "train" else params.get("steps")
        self._run = _Run(loop, first, last, params, size, self._printer.clock)
        self._printer.begin()

    def _step(self, loop: str, batch: int, logs: Any) -> None:
        if self._run is not None and self._run.loop == loop:
            self._run.count(batch, logs)
            if self._printer.is_due():
                self._show()

    def _end(self, loop: str, logs: Any) -> None:
        if self._run is not None and self._run.loop == loop:
            self._run.keep(logs)
            self._printer.end(progress_line(self._run.standing()))
            self._run = None

    def _show(self) -> None:
        if self._run is not None:
            self._printer.show(progress_line(self._run.standing()))


class _Run:
    """One loop from its begin to its end. (Its attributes are not saved for a restart.)

    Args:
      loop: "train", "evaluate" or "predict".
      first: the global step before the loop's first step; 0 unless it trains.
      last: the step at which it ends, if the user or the loop knows it.
      params: the callback's `params`.
      batch_size: examples in a step, or None.
      clock: seconds as a float.
    """

    def __init__(
        self,
        loop: str,
        first: int,
        last: int | None,
        params: Mapping[str, Any],
        batch_size: int | None,
        clock: Callable[[], float],
    ) -> None:
        self.loop = loop
        self._step = first
        self._last = last
        self._params = params
        self._batch_size = batch_size
        self._clock = clock
        self._epoch: int | None = None
        self._batch = -1
        self._logs: Any = None
        self._kept: dict[str, float] = {}
        self._timed_from: tuple[float, int] | None = None

    def begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._batch = -1

    def count(self, batch: int, logs: Any) -> None:
        """Steps up to a batch of the epoch have run."""
        self._step += max(batch - self._batch, 1)
        self._batch = batch
        self._logs = logs
        if self._timed_from is None:
            # The first step is not timed: it also builds the graph or function.
            self._timed_from = (self._clock(), self._step)

    def keep(self, logs: Any) -> None:
        """Keeps values until new values with the same names come."""
        self._kept.update(_numbers(logs))
        self._logs = None

    def standing(self) -> Standing:
        self._kept.update(_numbers(self._logs))
        has_epochs = self._params.get("steps") is not None or (self._epoch or 0) > 0
        epochs = self._params.get("epochs")
        return Standing(
            self.loop,
            self._step,
            last_step=self._last_step(epochs),
            epoch=None if self._epoch is None or not has_epochs else self._epoch + 1,
            epochs=epochs,
            values=self._kept,
            steps_per_sec=self._rate(),
            batch_size=self._batch_size,
        )

    def _last_step(self, epochs: int | None) -> int | None:
        steps = self._params.get("steps")
        if self._last is not None:
            return self._last
        if steps is None or epochs is None or self._epoch is None:
            return None
        left = steps * (epochs - self._epoch) - (self._batch + 1)
        return self._step + max(int(left), 0)

    def _rate(self) -> float | None:
        if self._timed_from is None:
            return None
        since, first = self._timed_from
        secs = self._clock() - since
        return (self._step - first) / secs if self._step > first and secs > 0 else None


class _Printer:
    """Where lines go, and how often."""

    def __init__(
        self,
        stream: TextIO | None,
        every_secs: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._given = stream
        self._every_secs = every_secs
        self.clock = clock
        self._next = -float("inf")

    @property
    def _stream(self) -> TextIO:
        """Looked up at each use: programs and test runners replace `sys.stderr`."""
        return sys.stderr if self._given is None else self._given

    def begin(self) -> None:
        self._next = -float("inf")

    def is_due(self) -> bool:
        return self.clock() >= self._next

    def show(self, line: str) -> None:
        """Prints a line if the last one is old enough."""
        if not self.is_due():
            return
        terminal = self._stream.isatty()
        every = TERMINAL_SECS if terminal else FILE_SECS
        self._next = self.clock() + (self._every_secs or every)
        self._print(line, "" if terminal else "\n")

    def end(self, line: str) -> None:
        """Prints the last line, which stays."""
        self._print(line, "\n")

    def _print(self, line: str, end: str) -> None:
        stream = self._stream
        if stream.isatty():
            width = shutil.get_terminal_size().columns
            line = f"{_CLEAR}{line[: width - 1]}"
        stream.write(line + end)
        stream.flush()


def _numbers(logs: Any) -> dict[str, float]:
    """The numbers in `logs`; waits for values that a worker has not sent yet."""
    found = {}
    for name, value in (_fetched(logs) or {}).items():
        try:
            found[str(name)] = float(_fetched(value))
        except (TypeError, ValueError):
            continue  # an array, such as predictions
    return found


def _fetched(value: Any) -> Any:
    """The value itself: `ParameterServerStrategy` leaves logs or values on a worker."""
    return value.fetch() if hasattr(value, "fetch") else value
