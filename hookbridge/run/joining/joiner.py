"""The record of one run of a program: which trainings guests joined, and which not."""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.adapters import convert
from hookbridge.adapters.session_loop.validations import as_validation
from hookbridge.cluster import ClusterConfig
from hookbridge.run.joining.guest_file import GuestFile, message_of

USAGE_ERROR = 2


class Place(NamedTuple):
    """A line of the program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Joiner:
    """The guests from outside, for the trainings of this process."""

    def __init__(
        self,
        guests: GuestFile,
        steps_per_epoch: int | None,
        is_own: Callable[[str], bool],
    ) -> None:
        self._guests = guests
        self._steps_per_epoch = steps_per_epoch
        self._is_own = is_own
        self._here = threading.local()
        self._joined: dict[str, int] = {}
        self._refused = False
        self._unjoined: dict[tuple[str, Place | None], str] = {}

    @property
    def is_inside(self) -> bool:
        """Whether this thread is in a training that the guests have joined."""
        return bool(getattr(self._here, "depth", 0))

    @property
    def is_muted(self) -> bool:
        """Whether this thread evaluates for the guests themselves."""
        return bool(getattr(self._here, "muted", False))

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Marks this thread as inside a joined loop: guests join nothing in it."""
        self._here.depth = getattr(self._here, "depth", 0) + 1
        try:
            yield
        finally:
            self._here.depth -= 1

    @contextlib.contextmanager
    def evaluated_with(self, estimator: Any, eval_spec: Any) -> Iterator[None]:
        """Lets the trainings inside validate with this Estimator and `EvalSpec`."""
        self._here.pair = estimator, eval_spec
        try:
            yield
        finally:
            self._here.pair = None

    def hooks(self, kind: str) -> list[Any]:
        """New guests as hooks for a training of this thread."""
        return self._made(
            kind,
            lambda: convert.as_hooks(
                self._guests.of_training(),
                steps_per_epoch=self._steps_per_epoch,
                validation=self._validation(),
            ),
        )

    def evaluation_hooks(self, kind: str) -> list[Any]:
        """New guests as hooks for an evaluation."""
        return self._made(
            kind,
            lambda: convert.as_hooks(
                self._guests.of_evaluation(), steps_per_epoch=self._steps_per_epoch
            ),
        )

    def callbacks(self, kind: str) -> list[Any]:
        """New guests as callbacks for a `fit`."""
        return self._made(
            kind, lambda: convert.as_callbacks(self._guests.of_training())
        )

    def note_unjoined(self, what: str, why: str) -> None:
        """Notes a training that no guest joins, at the program's line that runs it."""
        place = self._place()
        self._unjoined.setdefault((what, place), why)

    def report(self) -> list[str]:
        """What to tell at the end of the program."""
        lines = [
            f"no guest joined `{what}`{f' in {place}' if place else ''}: {why}"
            for (what, place), why in self._unjoined.items()
        ]
        if not self._joined and not lines and not self._refused:
            lines.append("the program started no training, so no guest was called")
        return [f"hookbridge run: {line}" for line in lines]

    def _made(self, kind: str, make: Callable[[], list[Any]]) -> list[Any]:
        try:
            guests = make()
        except errors.HookBridgeError as e:
            self._refused = True
            print(message_of(e), file=sys.stderr)
            # The program's `except Exception` does not catch `SystemExit`.
            raise SystemExit(USAGE_ERROR) from None
        self._joined[kind] = self._joined.get(kind, 0) + 1
        return guests

    def _validation(self) -> Any:
        pair = getattr(self._here, "pair", None)
        in_cluster = bool(ClusterConfig.from_environment().cluster)
        if pair is None or in_cluster or self._steps_per_epoch is None:
            return None
        return _MutedValidation(as_validation(pair), self)

    def set_muted(self, value: bool) -> None:
        """Sets whether this thread evaluates for the guests themselves."""
        self._here.muted = value

    def _place(self) -> Place | None:
        for frame, line in traceback.walk_stack(sys._getframe(1)):
            if self._is_own(frame.f_code.co_filename):
                return Place(frame.f_code.co_filename, line)
        return None


class _MutedValidation:
    """The validation that guests asked for; no guest joins its evaluation."""

    def __init__(self, validation: Any, joiner: Joiner) -> None:
        self._validation = validation
        self._joiner = joiner

    def begin(self) -> None:
        """Called once, while the graph may change."""
        begin = getattr(self._validation, "begin", None)
        if callable(begin):
            begin()

    def run(self, session: Any, report: Any) -> Any:
        """Evaluates once."""
        self._joiner.set_muted(True)
        try:
            return self._validation.run(session, report)
        finally:
            self._joiner.set_muted(False)
