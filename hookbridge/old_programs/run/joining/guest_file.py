"""The guests of a file, or a recorder: new ones for each training."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from hookbridge.adapters.guests import kinds
from hookbridge.adapters.guests.guest_record import records
from hookbridge.jobs.training.user_file import find_guests, load_file

# The file's module has this name: the program may have a module of the file's own name.
MODULE = "guests_from_outside"
# Names in the file: its guests, and optionally other guests for evaluations.
GUESTS, EVALUATION = "guests", "evaluation_guests"
# Hooks of TensorFlow for trainings only. In an evaluation the global step stands still:
# these hooks would end the evaluation early or log a warning.
OF_TRAINING = frozenset(
    {"CheckpointSaverHook", "GlobalStepWaiterHook", "StepCounterHook", "StopAtStepHook"}
)


class GuestFile:
    """A file with `guests`, which is a list or a function that returns one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._module = _load(path)
        self._used = False
        if not hasattr(self._module, GUESTS):
            find_guests(self._module, GUESTS)  # raises, and says what is expected

    def of_training(self) -> list[Any]:
        """Return new hooks and callbacks for one training."""
        return self._make(GUESTS)

    def of_evaluation(self) -> list[Any]:
        """Return new guests for one evaluation, by `evaluation_guests` if any.

        Without them, the `guests` that are not in `OF_TRAINING`.
        """
        if hasattr(self._module, EVALUATION):
            return self._make(EVALUATION)
        return [guest for guest in self._make(GUESTS) if not _is_of_training(guest)]

    def _make(self, name: str) -> list[Any]:
        """Return new guests of the file: call its function, or run the file again."""
        value = getattr(self._module, name)
        is_guest = kinds.is_hook(value) or kinds.is_callback(value)
        if self._used and (is_guest or not callable(value)):
            # A list is made when the file runs: the file runs again for new guests.
            self._module = _load(self.path)
        self._used = True
        guests = records(find_guests(self._module, name))
        for guest in guests:
            guest.check_kind()
        return [guest.item for guest in guests]


class Recorders:
    """An `hb.recorder` for each training, after the guests of a file, if there is one.

    Args:
      folder: the folder of the first training's recording.
      options: the options of `hb.recorder`.
      others: the file whose guests join too; None for none.
    """

    def __init__(
        self, folder: str, options: Mapping[str, Any], others: GuestFile | None = None
    ) -> None:
        self._folder, self._options = os.path.abspath(folder), options
        self.others: GuestFile | None = others
        self._made: list[Any] = []

    def of_training(self) -> list[Any]:
        """Return new hooks and callbacks for one training, with a recorder."""
        of_others = self.others.of_training() if self.others else []
        return [*of_others, *self.recorder()]

    def recorder(self) -> list[Any]:
        """Return a recorder with a folder of its own."""
        from hookbridge.reference.record.recorder import recorder

        folder = self._folder
        if self._made:
            folder = os.path.join(folder, f"training-{len(self._made) + 1}")
        self._made.append(recorder(folder, **self._options))
        return self._made[-1:]

    def of_evaluation(self) -> list[Any]:
        """Return the file's guests: evaluations are not recorded."""
        return self.others.of_evaluation() if self.others else []

    def end(self) -> None:
        """End the recordings of trainings that called no `end`."""
        for recorder in self._made:
            recorder.end(None)


def _load(path: str) -> ModuleType:
    """Load the file; modules of the program keep their names and come first."""
    before = list(sys.path)
    try:
        return load_file(path, MODULE)
    finally:
        folder = os.path.dirname(os.path.abspath(path))
        sys.path[:] = before if folder in before else [*before, folder]


def _is_of_training(guest: object) -> bool:
    from hookbridge.reference.record.recorder import Recorder

    return isinstance(guest, Recorder) or any(
        c.__name__ in OF_TRAINING for c in type(guest).__mro__
    )
