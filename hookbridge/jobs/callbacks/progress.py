"""One line that shows the progress of either loop."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from hookbridge import errors
from hookbridge.ground.arguments import (
    optional_count,
    seconds,
    shown,
    with_arguments,
)
from hookbridge.ground.protocols import Logs
from hookbridge.ground.texts import live_lines
from hookbridge.jobs.callbacks.ready_made import ReadyMade

TERMINAL_SECS, FILE_SECS = 0.2, 10.0


class Progress(ReadyMade):
    """Prints epoch, step, loss, metrics, examples per second, and the time left.

    On a terminal it rewrites one line in place. Into a file or a pipe it prints plain
    lines, among them the first of each loop, and the last one unless an error ends the
    loop. It shows training, evaluation and prediction, in a session and in `fit`; a
    validation within a training adds its `val_` values. Values are read only when a
    line is printed, so the steps between cost nothing. Its role is `"chief"`.

    Args:
      batch_size: examples in a step, for examples per second; by default the entry of
        `params`, which `hookbridge train` gives. Without it, it shows steps per second.
      last_step: the global step at which the training ends, for the time left. Give it
        if the loop does not know it, as in a session with a `StopAtStepHook`.
      every_secs: the least time between two lines, in seconds; by default 0.2 on a
        terminal and 10 elsewhere. With 0 each step has a line.
      stream: where lines go; by default `sys.stderr`.
      clock: returns seconds as a float; a test gives its own. It is called at least
        once after each step, on the thread of the loop.

    Raises:
      errors.InvalidArgumentError: an argument has a bad value.
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
        optional_count("batch_size", batch_size)
        optional_count("last_step", last_step)
        if every_secs is not None:
            seconds("every_secs", every_secs)
        if stream is not None and not hasattr(stream, "write"):
            raise errors.InvalidArgumentError(
                f"Received stream={shown(stream)}; expected a text stream."
            )
        with_arguments("clock", clock)
        super().__init__("chief")
        self._batch_size = batch_size
        self._last_step = last_step
        self._every_secs = every_secs
        self._stream = stream
        self._clock = clock
        self._run: _Run | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        self._run = None
        self._begin("train", self.global_step())

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        if self._run is not None:
            self._run.epoch, self._run.batch = epoch, -1

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._step("train", batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._run is not None:
            self._run.keep(logs)  # until the next step
            self._show_if_due(self._run)

    def on_train_end(self, logs: Logs = None) -> None:
        self._end("train", logs)

    def on_test_begin(self, logs: Logs = None) -> None:
        self._begin("evaluate")

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._step("evaluate", batch, logs)

    def on_test_end(self, logs: Logs = None) -> None:
        self._end("evaluate", logs)

    def on_predict_begin(self, logs: Logs = None) -> None:
        self._begin("predict")

    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._step("predict", batch, None)

    def on_predict_end(self, logs: Logs = None) -> None:
        self._end("predict", None)

    def _begin(self, loop: str, first: int = 0) -> None:
        if self._run is not None and self._run.loop == "train":
            return  # an evaluation, or a prediction, within a training
        params = self.params or {}
        last_step = self._last_step if loop == "train" else params.get("steps")
        size = self._batch_size or params.get("batch_size")
        self._run = _Run(loop, first, last_step, params, size, self._clock)

    def _step(self, loop: str, batch: int, logs: Logs) -> None:
        if self._run is not None and self._run.loop == loop:
            self._run.count(batch, logs)
            self._show_if_due(self._run)

    def _end(self, loop: str, logs: Logs) -> None:
        if self._run is not None and self._run.loop == loop:
            self._run.keep(logs)
            self._print(self._run.line(), "\n")
            self._run = None

    def _show_if_due(self, run: _Run) -> None:
        if self._clock() < run.next_line:
            return
        terminal = self._rewrites()
        every = self._every_secs
        if every is None:
            every = TERMINAL_SECS if terminal else FILE_SECS
        run.next_line = self._clock() + every
        self._print(run.line(), "" if terminal else "\n")

    def _print(self, line: str, end: str) -> None:
        stream = self._output
        if self._rewrites():
            width = shutil.get_terminal_size().columns or 80  # some have no size
            line = f"{live_lines.CLEAR}{line[: width - 1]}"
        stream.write(line + end)
        stream.flush()

    def _rewrites(self) -> bool:
        is_shown = self._output is sys.stderr and live_lines.VARIABLE in os.environ
        return is_shown or self._output.isatty()

    @property
    def _output(self) -> TextIO:
        """Looked up at each use: programs and test runners replace `sys.stderr`."""
        return sys.stderr if self._stream is None else self._stream


@dataclass
class _Run:
    """One loop from its start to its end. (Its attributes are not saved for a restart.)

    `step` counts the training steps of the model, or the batches of the loop, and
    `last` is where it ends, if the user or the loop knows that.
    """

    loop: str
    step: int
    last: int | None
    params: Mapping[str, Any]
    batch_size: int | None
    clock: Callable[[], float]
    epoch: int | None = None
    batch: int = -1
    logs: Any = None
    values: dict[str, float] = field(default_factory=dict)
    timed_from: tuple[float, int] | None = None
    next_line: float = -math.inf

    def count(self, batch: int, logs: Logs) -> None:
        """Count the steps up to a batch of the epoch."""
        self.step += max(batch - self.batch, 1)
        self.batch = batch
        self.logs = logs
        if self.timed_from is None:
            # The first step is not timed: it also builds the graph or function.
            self.timed_from = (self.clock(), self.step)

    def keep(self, logs: Logs) -> None:
        """Keep values until new values with the same names come."""
        self.values.update(_numbers(logs))
        self.logs = None

    def line(self) -> str:
        """Return the line; what is not known is left out."""
        self.values.update(_numbers(self.logs))
        last_step = self._last_step()
        # The values are last: a terminal may be too narrow for all of them.
        parts = [
            *self._position(last_step),
            *self._speed(last_step),
            *self._shown_values(),
        ]
        return "  ".join(parts)

    def _last_step(self) -> int | None:
        """Return where the loop ends, as given or by the epochs of Keras."""
        steps, epochs = self.params.get("steps"), self.params.get("epochs")
        if self.last is not None or self.epoch is None or not (steps and epochs):
            return self.last
        planned = steps * (epochs - self.epoch) - (self.batch + 1)
        return self.step + max(int(planned), 0)

    def _position(self, last: int | None) -> Iterator[str]:
        """Return the loop's name unless it trains, and its epoch and step."""
        if self.loop != "train":
            yield self.loop
        has_epochs = self.params.get("steps") is not None
        if self.epoch is not None and (has_epochs or self.epoch > 0):
            yield f"epoch {_of(self.epoch + 1, self.params.get('epochs'))}"
        word = "step" if self.loop == "train" else "batch"
        yield f"{word} {_of(self.step, last)}"

    def _speed(self, last: int | None) -> Iterator[str]:
        """Yield how fast the loop is, and how long it still takes."""
        rate = self._steps_per_sec()
        if rate is None:
            return
        if self.batch_size:
            yield f"{rate * self.batch_size:.4g} examples/s"
        else:
            yield f"{rate:.4g} steps/s"
        if last is not None and last > self.step:
            yield f"{clock((last - self.step) / rate)} left"

    def _shown_values(self) -> list[str]:
        """Return the values, the loss first."""
        names = sorted(self.values, key=lambda name: name != "loss")
        return [f"{name} {self.values[name]:.4g}" for name in names]

    def _steps_per_sec(self) -> float | None:
        since, first = self.timed_from or (0.0, self.step)
        secs = self.clock() - since
        return (self.step - first) / secs if self.step > first and secs > 0 else None


def clock(secs: float) -> str:
    """Return seconds as `0:07`, `12:30` or `3:05:00`."""
    minutes, seconds = divmod(round(secs), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _of(number: int, last: int | None) -> str:
    return str(number) if last is None else f"{number}/{last}"


def _numbers(logs: Logs) -> dict[str, float]:
    """Return the numbers in `logs`; waits for values that a worker has not sent yet."""
    numbers = {}
    for name, value in (_fetched(logs) or {}).items():
        try:
            numbers[str(name)] = float(_fetched(value))
        except (TypeError, ValueError):
            continue  # an array, such as predictions
    return numbers


def _fetched(value: object) -> Any:
    """Fetch the value that `ParameterServerStrategy` leaves on a worker."""
    return value.fetch() if hasattr(value, "fetch") else value
