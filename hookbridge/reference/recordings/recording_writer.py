"""Writes a recording step by step; `recording_files` says what its files are."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hookbridge import errors
from hookbridge.ground.arguments import amount, choice, optional_count, writable
from hookbridge.ground.processes.tf_config import task_of
from hookbridge.ground.whole_files import replacing
from hookbridge.reference.recordings.array_norms import norm, norm_of_change, plain
from hookbridge.reference.recordings.recording_files import (
    ARRAYS,
    FORMAT,
    HEADER,
    NUMBERS,
    STEPS_FILE,
    Arrays,
    Recording,
)

_MEGABYTE = 2**20
# The first steps are kept whole as long as they take this part of what is allowed: how
# an optimizer moves weights is seen in several steps.
_FIRST, _PART_OF_FIRST = 5, 0.1


class Writer:
    """Writes one recording.

    Args:
      directory: an empty folder, or one that can be made.
      facts: what `recording.json` says beside the variables.
      every: the whole variables are kept after each this many steps; None keeps those
        after the first and the last step, and of small ones after the first five.
      whole_gradients: whether gradients are kept as arrays beside their norms, also
        after these steps.
      max_megabytes: how large the recording may become.
    """

    def __init__(
        self,
        directory: object,
        facts: Mapping[str, Any],
        *,
        every: int | None,
        whole_gradients: bool,
        max_megabytes: float,
    ) -> None:
        self._folder = Path(new_folder(directory))
        self._facts = {"format": FORMAT, **facts}
        self._every, self._whole_gradients = every, whole_gradients
        self._limit, self._written = max_megabytes * _MEGABYTE, 0
        self._last: dict[str, Any] = {}
        self._kept = True  # whether the last step's variables are in a file
        self.steps: int = 0

    def begin(self, variables: Arrays, kinds: Mapping[str, str]) -> None:
        """Write the variables before the first step."""
        self._last = _plain(variables)
        self._facts["variables"] = {
            name: {
                "kind": kinds.get(name, "weight"),
                "shape": list(value.shape),
                "dtype": str(value.dtype),
            }
            for name, value in self._last.items()
        }
        (self._folder / ARRAYS).mkdir(exist_ok=True)
        self._save(_arrays_by_name("variables", self._last))
        (self._folder / STEPS_FILE).write_text("", encoding="utf-8")
        self._write_header()

    def step(
        self,
        line: Mapping[str, Any],
        *,
        variables: Arrays,
        batch: Arrays,
        gradients: Arrays,
    ) -> None:
        """Write one step: its numbers, and the variables after it."""
        self.steps += 1
        after, parts = _plain(variables), _plain(batch)
        whole = {
            **line,
            "step": self.steps,
            "batch": {n: [list(v.shape), str(v.dtype)] for n, v in parts.items()},
            "gradient_norms": {n: norm(value) for n, value in gradients.items()},
            "norms": {name: norm(value) for name, value in after.items()},
            "change_norms": self._changes(after),
        }
        arrays = _arrays_by_name("batch", parts)
        is_first = self.steps == 1 or self._is_small(parts, after, gradients)
        # Those of the first step tell which updates are chance.
        if self._whole_gradients or is_first:
            arrays |= _arrays_by_name("gradients", _plain(gradients))
        self._last = after
        self._kept = is_first or bool(self._every and self.steps % self._every == 0)
        if self._kept:
            arrays |= _arrays_by_name("variables", after)
        self._save(arrays)
        with open(self._folder / STEPS_FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(_for_json(whole)) + "\n")

    def _is_small(self, *parts: Arrays) -> bool:
        """Return whether a step is one of the first, and these are small."""
        size = sum(np.asarray(v).nbytes for part in parts for v in part.values())
        return self.steps <= _FIRST and _FIRST * size <= _PART_OF_FIRST * self._limit

    def note(self, **facts: Any) -> None:
        """Add to what `recording.json` says."""
        self._facts.update(facts)

    def close(self) -> None:
        """Keep the variables after the last step."""
        if not self._kept:
            arrays = Recording(self._folder).steps[-1].held
            self._save({**arrays, **_arrays_by_name("variables", self._last)})
            self._kept = True
        self._write_header()

    def _changes(self, after: Arrays) -> dict[str, float]:
        """Return how far variables have moved since the last step."""
        return {
            name: norm_of_change(value, self._last[name])
            for name, value in after.items()
            if name in self._last and value.shape == self._last[name].shape
        }

    def _save(self, arrays: Mapping[str, Any]) -> None:
        """Write the arrays of this step, unless the recording gets too large."""
        if not arrays:
            return
        size = sum(value.nbytes for value in arrays.values())
        if self._written + size > self._limit:
            raise errors.InvalidArgumentError(
                f"The recording in {str(self._folder)!r} would have more than "
                f"max_megabytes={self._limit / _MEGABYTE:g}: it has {self._written:,} "
                f"bytes, and step {self.steps} adds {size:,}. Record fewer steps, keep "
                "whole variables or gradients less often, or allow more."
            )
        self._written += size
        target = str(self._folder / ARRAYS / f"{self.steps}.npz")
        with replacing(target, f"{target}.part"), open(f"{target}.part", "wb") as file:
            np.savez(file, **arrays)

    def _write_header(self) -> None:
        target = str(self._folder / HEADER)
        with replacing(target, f"{target}.part"):
            Path(f"{target}.part").write_text(
                json.dumps(_for_json(self._facts), indent=1) + "\n", encoding="utf-8"
            )


def checked_options(
    weights_every: int | None, gradients: str, max_megabytes: float
) -> dict[str, Any]:
    """Return the options of `Writer` for those that users give.

    Raises:
      errors.InvalidArgumentError: one has a bad value.
    """
    optional_count("weights_every", weights_every)
    amount("max_megabytes", max_megabytes)
    choice("gradients", gradients, ("norms", "whole"))
    return {
        "every": weights_every,
        "whole_gradients": gradients == "whole",
        "max_megabytes": max_megabytes,
    }


def records_here() -> bool:
    """Return whether this process records: the chief of a cluster, or the only one."""
    return task_of() in ("local", "chief")


def new_folder(directory: Any) -> str:
    """Return a folder without a recording in it, that can be written."""
    folder = writable(directory, name="directory")
    if os.path.exists(os.path.join(folder, HEADER)):
        raise errors.InvalidArgumentError(
            f"Received directory={folder!r}, which has a recording already; expected "
            "another folder. Remove the recording, or record into another one."
        )
    return folder


def _plain(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays of types that NumPy itself has."""
    return {name: plain(value) for name, value in arrays.items()}


def _arrays_by_name(part: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays by the names that they have in the file."""
    return {f"{part}/{name}": value for name, value in arrays.items()}


def _for_json(value: object) -> Any:
    """Return a value for JSON, which has strings for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): _for_json(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(element) for element in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return next((k for k, v in NUMBERS.items() if v == value), "NaN")
    return value
