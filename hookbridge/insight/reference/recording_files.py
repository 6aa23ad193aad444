"""The files of a recording, written step by step and read with NumPy alone.

recording.json    what was recorded, and how: versions, seeds, variables, optimizer
steps.jsonl       one line for each step: numbers, norms, names and shapes
arrays/N.npz      arrays of step N; N is 0 for the variables before the first step
checkpoint/       TensorFlow's checkpoint of step 0, of a run of TensorFlow
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hookbridge import errors
from hookbridge.ground.arguments import path, writable
from hookbridge.ground.whole_files import replacing

HEADER, STEPS, ARRAYS = "recording.json", "steps.jsonl", "arrays"
FORMAT = 1
MEGABYTE = 2**20
Arrays = Mapping[str, Any]


def norm(value: Any) -> float:
    """The square root of the sum of squares, in float64."""
    return float(np.linalg.norm(np.asarray(value, np.float64).ravel()))


def plain(value: Any) -> Any:
    """An array of a type that NumPy itself has; texts become bytes."""
    array = np.asarray(value)
    if array.dtype == object:
        return array.astype(np.bytes_)
    # NumPy has no bfloat16 or float8 of its own, and would write them as bytes.
    return array.astype(np.float32) if array.dtype.kind == "V" else array


class Writer:
    """Writes one recording.

    Args:
      directory: an empty folder, or one that can be made.
      facts: what `recording.json` says beside the variables.
      every: the whole variables are kept after each this many steps; None keeps those
        after the first and the last step.
      whole_gradients: whether gradients are kept as arrays beside their norms, also
        after the first step.
      max_megabytes: how large the recording may become.
    """

    def __init__(
        self,
        directory: Any,
        facts: Mapping[str, Any],
        *,
        every: int | None,
        whole_gradients: bool,
        max_megabytes: float,
    ) -> None:
        self._folder = Path(new_folder(directory))
        self._facts = {"format": FORMAT, **facts}
        self._every, self._whole_gradients = every, whole_gradients
        self._limit, self._written = max_megabytes * MEGABYTE, 0
        self._last: dict[str, Any] = {}
        self._kept = True  # whether the last step's variables are in a file
        self.steps: int = 0

    def begin(self, variables: Arrays, kinds: Mapping[str, str]) -> None:
        """Writes the variables before the first step."""
        self._last = {name: plain(value) for name, value in variables.items()}
        self._facts["variables"] = {
            name: {
                "kind": kinds.get(name, "weight"),
                "shape": list(value.shape),
                "dtype": str(value.dtype),
            }
            for name, value in self._last.items()
        }
        (self._folder / ARRAYS).mkdir(exist_ok=True)
        self._save({f"variables/{name}": v for name, v in self._last.items()})
        (self._folder / STEPS).write_text("", encoding="utf-8")
        self._write_header()

    def step(
        self,
        line: Mapping[str, Any],
        *,
        variables: Arrays,
        batch: Arrays,
        gradients: Arrays,
    ) -> None:
        """Writes one step: its numbers, and the variables after it."""
        self.steps += 1
        after = {name: plain(value) for name, value in variables.items()}
        arrays = {f"batch/{name}": plain(value) for name, value in batch.items()}
        whole = {**line, "step": self.steps}
        whole["batch"] = {
            name.partition("/")[2]: [list(value.shape), str(value.dtype)]
            for name, value in arrays.items()
        }
        whole["gradient_norms"] = {n: norm(value) for n, value in gradients.items()}
        whole["norms"] = {name: norm(value) for name, value in after.items()}
        whole["change_norms"] = {
            name: norm(np.subtract(value, self._last[name], dtype=np.float64))
            for name, value in after.items()
            if name in self._last and value.shape == self._last[name].shape
        }
        # Those of the first step tell which updates are chance.
        if self._whole_gradients or self.steps == 1:
            arrays |= {f"gradients/{n}": plain(v) for n, v in gradients.items()}
        self._last = after
        self._kept = self.steps == 1 or bool(
            self._every and self.steps % self._every == 0
        )
        if self._kept:
            arrays |= {f"variables/{name}": value for name, value in after.items()}
        self._save(arrays)
        with open(self._folder / STEPS, "a", encoding="utf-8") as file:
            file.write(json.dumps(_finite(whole)) + "\n")

    def note(self, **facts: Any) -> None:
        """Adds to what `recording.json` says."""
        self._facts.update(facts)

    def close(self) -> None:
        """Keeps the variables after the last step."""
        if not self._kept:
            held = Recording(self._folder).steps[-1].held
            last = {f"variables/{name}": value for name, value in self._last.items()}
            self._save({**held, **last})
            self._kept = True
        self._write_header()

    def _save(self, arrays: Mapping[str, Any]) -> None:
        """Writes the arrays of this step, unless the recording gets too large."""
        if not arrays:
            return
        size = sum(value.nbytes for value in arrays.values())
        if self._written + size > self._limit:
            raise errors.InvalidArgumentError(
                f"The recording in {str(self._folder)!r} would have more than "
                f"max_megabytes={self._limit / MEGABYTE:g}: it has {self._written:,} "
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
                json.dumps(_finite(self._facts), indent=1) + "\n", encoding="utf-8"
            )


class RecordedStep:
    """One step of a recording."""

    def __init__(self, folder: Path, line: Mapping[str, Any]) -> None:
        self._file = folder / ARRAYS / f"{line['step']}.npz"
        self.line = line
        self.number: int = int(line["step"])

    @property
    def loss(self) -> float | None:
        """The loss; None if it was not recorded."""
        return _number(self.line, "loss")

    @property
    def learning_rate(self) -> float | None:
        """The learning rate; None if it was not recorded."""
        return _number(self.line, "learning_rate")

    @property
    def held(self) -> dict[str, Any]:
        """All arrays of the step, by their names in the file."""
        return _load(self._file)

    def arrays(self, part: str) -> dict[str, Any]:
        """The arrays of one part: "batch", "variables" or "gradients"."""
        return _part(self.held, part)


class Recording:
    """A recording that is read: what it is of, and its steps in order.

    Raises:
      errors.InvalidArgumentError: the folder has no recording, or one that is damaged.
    """

    def __init__(self, directory: Any) -> None:
        folder = Path(path("directory", directory, "a folder"))
        self.folder: Path = folder
        try:
            header = (folder / HEADER).read_text(encoding="utf-8")
            self.header: dict[str, Any] = json.loads(header)
            lines = (folder / STEPS).read_text(encoding="utf-8")
            self.steps: list[RecordedStep] = [
                RecordedStep(folder, json.loads(line)) for line in lines.splitlines()
            ]
            if self.header["format"] != FORMAT:
                raise ValueError(f"it has the format {self.header['format']}")
            self.variables: dict[str, dict[str, Any]] = self.header["variables"]
        except (OSError, ValueError, KeyError) as e:
            raise errors.InvalidArgumentError(
                f"Received {str(folder)!r}, which has no recording ({e}); expected a "
                "folder that `hookbridge record`, `hb.recorder` or `hb.recording` has "
                "written."
            ) from e

    @property
    def initial(self) -> dict[str, Any]:
        """The variables before the first step."""
        return _part(_load(self.folder / ARRAYS / "0.npz"), "variables")

    def shapes(self, *kinds: str) -> dict[str, tuple[int, ...]]:
        """The shapes of the variables of some kinds, in order."""
        every = self.variables.items()
        return {n: tuple(v["shape"]) for n, v in every if v["kind"] in kinds}


def new_folder(directory: Any) -> str:
    """A folder without a recording in it, that can be written."""
    folder = writable(directory, name="directory")
    if os.path.exists(os.path.join(folder, HEADER)):
        raise errors.InvalidArgumentError(
            f"Received directory={folder!r}, which has a recording already; expected "
            "another folder. Remove the recording, or record into another one."
        )
    return folder


def _load(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def _part(arrays: Mapping[str, Any], part: str) -> dict[str, Any]:
    prefix = f"{part}/"
    named = arrays.items()
    return {n.removeprefix(prefix): v for n, v in named if n.startswith(prefix)}


def _number(line: Mapping[str, Any], key: str) -> float | None:
    if key not in line:
        return None
    return math.nan if line[key] is None else float(line[key])


def _finite(value: Any) -> Any:
    """A value for JSON, which has no NaN: None is a number that is not finite."""
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
