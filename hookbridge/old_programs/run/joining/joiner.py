"""The record of one run of a program: which trainings guests joined, and which not."""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge import errors
from hookbridge.adapters import convert
from hookbridge.adapters.session_loop.evaluations.validations import EstimatorValidation
from hookbridge.adapters.session_loop.shared.options import BY_FLAG, HookOptions
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.ground.protocols import Session
from hookbridge.old_programs.run.joining.guest_file import GuestFile, Recorders


class _ThisThread(threading.local):
    """What a thread of the program is doing, as far as guests have joined it."""

    depth: int = 0  # of joined loops that are inside of each other
    # What `train_and_evaluate` evaluates with, an Estimator and an `EvalSpec`.
    pair: tuple[Any, Any] | None = None
    is_muted: bool = False  # whether an evaluation is one of the guests' own


class Joiner:
    """The guests from outside, for the trainings of this process."""

    def __init__(
        self,
        guests: GuestFile | Recorders,
        steps_per_epoch: int | None,
        is_own: Callable[[str], bool],
    ) -> None:
        self._guests = guests
        self._steps_per_epoch = steps_per_epoch
        self._is_own = is_own
        self._here = _ThisThread()
        self._has_made_guests = False
        # What was not joined, and the program's line that runs it -> why.
        self._unjoined: dict[tuple[str, str], str] = {}

    @property
    def has_recorders(self) -> bool:
        """Return whether the guests are recorders, also for plain sessions."""
        return isinstance(self._guests, Recorders)

    @property
    def has_others(self) -> bool:
        """Return whether there are guests other than recorders."""
        guests = self._guests
        return not isinstance(guests, Recorders) or guests.others is not None

    @property
    def is_inside(self) -> bool:
        """Return whether this thread is in a training that the guests have joined."""
        return self._here.depth > 0

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Mark this thread as inside a joined loop: guests join nothing in it."""
        self._here.depth += 1
        try:
            yield
        finally:
            self._here.depth -= 1

    @contextlib.contextmanager
    def evaluated_with(self, estimator: object, eval_spec: object) -> Iterator[None]:
        """Let the trainings inside validate with this Estimator and `EvalSpec`."""
        self._here.pair = estimator, eval_spec
        try:
            yield
        finally:
            self._here.pair = None

    def hooks(self) -> list[Any]:
        """Return new guests as hooks for a training of this thread."""
        return self._make_or_exit(
            lambda: convert.hooks_for(
                self._guests.of_training(), self._config(self._validation())
            )
        )

    def recorder(self) -> Any:
        """Return a new recorder alone, for a session that calls no hooks."""
        guests = self._guests
        assert isinstance(guests, Recorders)
        (hook,) = self._make_or_exit(
            lambda: convert.hooks_for(guests.recorder(), self._config())
        )
        return hook

    def evaluation_hooks(self) -> list[Any]:
        """Return new guests as hooks; none for an evaluation of the guests' own."""
        if self._here.is_muted:
            return []
        return self._make_or_exit(
            lambda: convert.hooks_for(self._guests.of_evaluation(), self._config())
        )

    def callbacks(self) -> list[Any]:
        """Return new guests as callbacks for a `fit`."""
        return self._make_or_exit(
            lambda: convert.as_callbacks(self._guests.of_training())
        )

    def note_unjoined(self, what: str, why: str) -> None:
        """Note a training that no guest joins, at the program's line that runs it."""
        frames = traceback.walk_stack(sys._getframe(1))
        places = (
            f" in {frame.f_code.co_filename}:{line}"
            for frame, line in frames
            if self._is_own(frame.f_code.co_filename)
        )
        self._unjoined.setdefault((what, next(places, "")), why)

    def report(self) -> list[str]:
        """Return what to tell at the end of the program, which ends its recordings."""
        if isinstance(self._guests, Recorders):
            self._guests.end()
        lines = [
            f"no guest joined `{loop}`{position}: {why}"
            for (loop, position), why in self._unjoined.items()
        ]
        if not self._has_made_guests and not lines:
            lines.append("the program started no training, so no guest was called")
        return [f"hookbridge run: {line}" for line in lines]

    def _make_or_exit(self, make: Callable[[], list[Any]]) -> list[Any]:
        self._has_made_guests = True
        try:
            return make()
        except errors.HookBridgeError as e:
            print(f"hookbridge: run: {' '.join(str(e).split())}", file=sys.stderr)
            # The program's `except Exception` does not catch `SystemExit`.
            raise SystemExit(exit_codes.USAGE) from None

    def _config(self, validation: object = None) -> HookOptions:
        return HookOptions(
            steps_per_epoch=self._steps_per_epoch,
            validation=validation,
            way_to_epochs=BY_FLAG,
        )

    def _validation(self) -> Any:
        pair = self._here.pair
        in_cluster = bool(ClusterConfig.from_environment().cluster)
        if pair is None or in_cluster or self._steps_per_epoch is None:
            return None
        estimator, eval_spec = pair
        return _MutedValidation(estimator, eval_spec, self._here)


class _MutedValidation(EstimatorValidation):
    """The validation that guests asked for; no guest joins its evaluation."""

    def __init__(self, estimator: object, eval_spec: object, here: _ThisThread) -> None:
        super().__init__(estimator, eval_spec)
        self._here = here

    def run(self, session: Session, report: Any) -> Any:
        self._here.is_muted = True
        try:
            return super().run(session, report)
        finally:
            self._here.is_muted = False
