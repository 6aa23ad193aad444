"""The files of a recording, and how NumPy alone reads them.

recording.json    what was recorded, and how: versions, seeds, variables, optimizer
steps.jsonl       one line for each step: numbers, norms, names and shapes
arrays/N.npz      arrays of step N; N is 0 for the variables before the first step
checkpoint/       TensorFlow's checkpoint of step 0, of a run of TensorFlow
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hookbridge import errors
from hookbridge.ground.arguments import path

HEADER, STEPS_FILE, ARRAYS = "recording.json", "steps.jsonl", "arrays"
FORMAT = 1
# Of a recording's facts: whether gradients are clipped, or changed in another way.
CHANGES_GRADIENTS = "changes_gradients"
# What the first step of the recorded training would give with each known mistake.
VARIATIONS = "variations"
Arrays = Mapping[str, Any]


# As protobuf writes them in JSON, which has no such numbers.
NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NORMS = ("metrics", "gradient_norms", "applied_norms", "norms", "change_norms")


# What reading a damaged file raises; a number may have more digits than fit.
_DAMAGE = (OSError, ValueError, OverflowError)


class RecordedStep:
    """One step of a recording."""

    def __init__(self, folder: Path, line: Mapping[str, Any]) -> None:
        self._file = folder / ARRAYS / f"{line['step']}.npz"
        read = {key: line.get(key) or {} for key in _NORMS}
        norms = {key: {n: _number(v) for n, v in read[key].items()} for key in read}
        self.line: dict[str, Any] = {**line, **norms, "batch": dict(line["batch"])}
        self.number: int = int(line["step"])
        # What there is of loss and learning rate.
        self.numbers: dict[str, float] = {
            key: _number(line[key]) for key in ("loss", "learning_rate") if key in line
        }

    @property
    def loss(self) -> float | None:
        """The loss; None if it was not recorded."""
        return self.numbers.get("loss")

    @property
    def learning_rate(self) -> float | None:
        """The learning rate; None if it was not recorded."""
        return self.numbers.get("learning_rate")

    @property
    def held(self) -> dict[str, Any]:
        """All arrays of the step, by their names in the file."""
        arrays = _load(self._file)
        _check_held(
            self._file, [f"batch/{name}" for name in self.line["batch"]], arrays
        )
        return arrays

    def arrays(self, part: str) -> dict[str, Any]:
        """Return the arrays of one part: "batch", "variables" or "gradients"."""
        return _part(self.held, part)


class Recording:
    """A recording that is read: what it is of, and its steps in order.

    Raises:
      errors.InvalidArgumentError: the folder has no recording, or one that is damaged.
    """

    def __init__(self, directory: object) -> None:
        folder = Path(path("directory", directory, "a folder"))
        self.folder: Path = folder
        try:
            header = (folder / HEADER).read_text(encoding="utf-8")
            self.header: dict[str, Any] = json.loads(header)
            lines = (folder / STEPS_FILE).read_text(encoding="utf-8")
            self.steps: list[RecordedStep] = [
                RecordedStep(folder, json.loads(line)) for line in lines.splitlines()
            ]
            numbers = [step.number for step in self.steps]
            if numbers != sorted(set(numbers)):
                raise ValueError(f"{STEPS_FILE} does not count its steps upwards")
            if self.header["format"] != FORMAT:
                raise ValueError(f"it has the format {self.header['format']}")
            self.variables: dict[str, dict[str, Any]] = self.header["variables"]
            for row in self.variables.values():
                _ = row["kind"], tuple(row["shape"]), np.dtype(row["dtype"])
        except (*_DAMAGE, KeyError, TypeError, AttributeError) as e:
            raise errors.InvalidArgumentError(
                f"Received {str(folder)!r}, which has no recording ({e}); expected a "
                "folder that `hookbridge record`, `hb.recorder` or `hb.recording` has "
                "written."
            ) from e

    @property
    def initial(self) -> dict[str, Any]:
        """The variables before the first step."""
        file = self.folder / ARRAYS / "0.npz"
        arrays = _load(file)
        _check_held(file, [f"variables/{name}" for name in self.variables], arrays)
        return _part(arrays, "variables")

    def before(self, number: int) -> dict[str, Any]:
        """Return the variables before a step, if they were recorded whole."""
        earlier = self.steps[number - 2] if number > 1 else None
        return self.initial if earlier is None else earlier.arrays("variables")

    def shapes(self, *kinds: str) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the variables of some kinds, in order."""
        every = self.variables.items()
        return {n: tuple(v["shape"]) for n, v in every if v["kind"] in kinds}


def _load(file: Path) -> dict[str, Any]:
    """Return the arrays of a file, by their names in it; None without the file."""
    if not file.exists():
        return {}
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as e:
        raise errors.InvalidArgumentError(
            f"{str(file)!r} of the recording is damaged ({e}); expected the arrays of "
            "a step. Copy the whole folder again, or record again."
        ) from e


def _check_held(file: Path, names: Iterable[str], arrays: Arrays) -> None:
    """Raise unless a file has the arrays that the recording says it has."""
    for name in names:
        if name not in arrays:
            wrong = f"has no {name!r}" if file.exists() else "is missing"
            raise errors.InvalidArgumentError(
                f"{str(file)!r} of the recording {wrong}; {HEADER!r} says that it has "
                f"{name!r}. Copy the whole folder again, or record again."
            )


def _part(arrays: Mapping[str, Any], part: str) -> dict[str, Any]:
    prefix = f"{part}/"
    named = arrays.items()
    return {n.removeprefix(prefix): v for n, v in named if n.startswith(prefix)}


def as_number(value: object) -> float | None:
    """Return a number of a JSON file; None for what is none."""
    if isinstance(value, str):
        return NUMBERS.get(value)
    return float(value) if isinstance(value, (int, float)) else None


def _number(value: object) -> float:
    """Return a number of a step.

    Old recordings have null for all that is not finite.
    """
    number = math.nan if value is None else as_number(value)
    if number is None:
        raise ValueError(f"{value!r} is not a number")
    return number
