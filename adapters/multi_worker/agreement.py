"""How the processes of one `fit` agree where to end.

Every process passes the same points: the end of each batch and of each epoch. The
collective operations of a step keep them at most one point apart. A step costs nothing
here: a thread waits for the note that somebody asks for an end, and answers with its
process's next point. All end at the latest of these, with the largest of their exit
codes.

The notes, each of which is written once in a `fit`:

    begun/<task>  the task takes part
    asks          the task that asks all others
    asked/<task>  the task that asks this one; `left` if its `fit` has ended
    next/<task>   the answer: `<next point> <exit code>`
    end           what all do: `<last point> <exit code>`
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.processes import exit_codes

# A waiting process looks around this often, for example for a KeyboardInterrupt.
_LOOK_SECS = 1.0


class Board:
    """The coordination service's keys of one loop; each note is written once."""

    def __init__(self, loop: str) -> None:
        self._context = compat.private("eager_context")()
        self._loop = loop

    def write(self, key: str, note: str) -> bool:
        """Write a note; return whether it is the first one of this key."""
        try:
            self._context.set_config_key_value(f"{self._loop}/{key}", note)
        except tf.errors.AlreadyExistsError:
            return False
        return True

    def read(self, key: str, limit_secs: float | None = None) -> str | None:
        """Wait for a note; None if there is none within the limit."""
        end = None if limit_secs is None else time.monotonic() + limit_secs
        while True:
            try:
                return str(
                    self._context.get_config_key_value(
                        f"{self._loop}/{key}", int(_LOOK_SECS * 1000)
                    )
                )
            except tf.errors.DeadlineExceededError:
                if end is not None and time.monotonic() >= end:
                    return None


# Once a step is done, all have begun: this only allows for the delay of a note.
BEGIN_SECS = 10.0
_LEFT = "left"


class Agreement:
    """One process's part in the end of one `fit`."""

    def __init__(self, board: Board, own_task: str, others: Sequence[str]) -> None:
        self._board = board
        self._own_task = own_task
        self._others = tuple(others)
        self._passed = 0
        self._is_asked = False
        self._own_code = exit_codes.DONE
        # The exit code with which all processes end, once they have agreed.
        self.code: int = exit_codes.DONE
        self._last_point: int | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._answer, name="hookbridge-agreement", daemon=True
        )
        board.write(f"begun/{own_task}", "")
        self._thread.start()

    def check_others(self) -> None:
        """Refuse, after the first step, a `fit` in which a process takes no part."""
        missing = [
            task
            for task in self._others
            if self._board.read(f"begun/{task}", BEGIN_SECS) is None
        ]
        if missing:
            raise errors.RefusedError(
                f"The `fit` of {self._own_task} has `hb.as_callbacks`, but the `fit` "
                f"of {', '.join(missing)} does not: a stop could not reach it. Give "
                "`fit` the list of `hb.as_callbacks` in every process, even if it is "
                "`hb.as_callbacks([])`.",
                see="several workers",
            )

    def ends_here(self, wants_end: bool, code: int = exit_codes.DONE) -> bool:
        """Pass the next point; return whether all processes end there.

        Args:
          wants_end: whether this process asks for an end.
          code: the exit code with which it asks.
        """
        here = self._passed + 1
        self._own_code = code
        if wants_end and self._last_point is None:
            self._ask(here)
        with self._lock:
            if not self._is_asked:
                self._passed = here
                return False
        while self._last_point is None and self._thread.is_alive():
            self._thread.join(0.1)
        self._passed = here
        # Without a last point the service is lost: as without hookbridge.
        return wants_end if self._last_point is None else here >= self._last_point

    def _ask(self, here: int) -> None:
        """Ask all others for their next points; the latest of all is the last one."""
        with self._lock:
            self._is_asked = True
        try:
            if not self._board.write("asks", self._own_task):
                return  # another process asks too, and hears from this one's thread
            answers = [f"{here} {self._own_code}"]
            for task in self._others:
                if self._board.write(f"asked/{task}", self._own_task):
                    answers.append(self._board.read(f"next/{task}") or answers[0])
            said = [[int(word) for word in answer.split()] for answer in answers]
            point, code = max(s[0] for s in said), max(s[1] for s in said)
            self._board.write("end", f"{point} {code}")
            self.code, self._last_point = code, point
        except tf.errors.OpError:
            self.code, self._last_point = self._own_code, here

    def _answer(self) -> None:
        """Wait until another process asks, and tell it this one's next point."""
        try:
            if self._board.read(f"asked/{self._own_task}") == _LEFT:
                return
            with self._lock:
                self._is_asked = True
                answer = f"{self._passed + 1} {self._own_code}"
            self._board.write(f"next/{self._own_task}", answer)
            point, code = map(int, (self._board.read("end") or answer).split())
            self.code, self._last_point = code, point
        except tf.errors.OpError:
            return  # a process is lost, and the next step says so

    def leave(self) -> None:
        """Note that the `fit` of this process has ended."""
        try:
            self._board.write(f"asked/{self._own_task}", _LEFT)
        except tf.errors.OpError:
            return
        self._thread.join(BEGIN_SECS)
