"""What can be seen of a run with guests, natively and through hookbridge, compared."""

from __future__ import annotations

import contextlib
import csv
import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import guest_code
import h5py
import hook_loops
import numpy as np
from callback_loops import fit, session_loop

import hookbridge as hb
from hookbridge.testing import EventLog, RecordingHook

NUMBERS = (bool, int, float, np.number, np.ndarray)
# Attributes that a callback of either loop has for itself.
_OF_THE_HOST = ("params", "model", "validation_data", "supports_tf_logs")


def guests_of(codes: Sequence[str], folder: Path, keras: Any) -> list[Any]:
    """The guests that the expressions make."""
    folder.mkdir()
    names = {
        "folder": folder,
        "k": keras,
        "hb": hb,
        "v1": hook_loops.v1,
        "train": hook_loops.v1.train,
        "G": guest_code,
    }
    return [eval(code, names) for code in codes]


def callbacks_seen(
    codes: Sequence[str], folder: Path, keras: Any, *, natively: bool, **options: Any
) -> dict[str, Any]:
    """Callbacks in `Model.fit`, or in a session loop of the same model."""
    guests = guests_of(codes, folder, keras)
    seen: dict[str, Any] = {}
    with _error_in(seen):
        if natively:
            loop = fit(keras, guests, **options)
        else:
            loop = session_loop(guests, missing_metric="warn", **options)
        seen |= {"history": loop.history, "weights": loop.weights, "steps": loop.steps}
    seen["guests"] = [_numbers(guest) for guest in guests]
    seen["files"] = _files(folder)
    return seen


def hooks_seen(
    codes: Sequence[str], folder: Path, keras: Any, *, natively: bool
) -> dict[str, Any]:
    """Hooks in a `MonitoredTrainingSession`, or in `fit` of the same model."""
    guests = guests_of(codes, folder, keras)
    log = EventLog()
    watcher = RecordingHook(log, "watcher", fetches="loss:0")
    end = hook_loops.v1.train.StopAtStepHook(last_step=hook_loops.STEPS)
    seen: dict[str, Any] = {}
    with hook_loops.tf_log() as lines, _error_in(seen):
        if natively:
            hook_loops.in_session([watcher, *guests, end])
        else:
            hook_loops.in_fit(keras, [watcher, *guests, end])
    seen["events"] = [delivery.event for delivery in log.of("watcher")]
    seen["losses"] = watcher.results()
    seen["lines"] = [_line(line) for line in lines if line.startswith("loss = ")]
    seen["values"] = [_final_value(guest) for guest in guests]
    seen["files"] = _files(folder)
    return seen


def _final_value(guest: Any) -> Any:
    with contextlib.suppress(AttributeError):
        return guest.final_ops_values
    return None


@contextlib.contextmanager
def _error_in(seen: dict[str, Any]) -> Any:
    """Notes the error of a run; the log of hookbridge stays quiet."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    seen["error"] = ""
    try:
        yield
    except Exception as e:
        seen["error"] = f"{type(e).__name__}: {str(e)[:300]}"
    finally:
        logger.setLevel(level)


def _numbers(guest: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(guest).items()
        if isinstance(value, NUMBERS) and not name.startswith("_")
        if name not in _OF_THE_HOST
    }


def _line(line: str) -> list[Any]:
    """The numbers of a line of `LoggingTensorHook`."""
    return [float(part.partition(" = ")[2]) for part in line.split(", ")]


def _files(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".csv":
            with path.open() as file:
                rows = list(csv.reader(file))
            found[name] = [[_as_number(cell) for cell in row] for row in rows]
        elif path.suffix == ".h5":
            found[name] = arrays(path)
        elif path.suffix == ".index":
            values = hook_loops.read_checkpoint(str(path.with_suffix("")))
            found[name] = dict(sorted(values.items()))
        elif path.is_dir() and list(path.glob("events.*")):
            scalars = hook_loops.read_scalars(path)
            found[name] = [
                (step, tag, 0.0 if tag == "global_step/sec" else value)
                for step, tag, value in scalars
            ]
    return found


def _as_number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def arrays(path: Path) -> dict[str, Any]:
    """The weights in a file: `{layer/vars/number: value}`.

    The folder around layers differs, and Keras 2 adds optimizer and metrics, which a
    callback in a session saves as `.h5` or in the checkpoint.
    """
    found: dict[str, Any] = {}

    def add(name: str, item: Any) -> None:
        others = "optimizer" in name or "metric" in name
        if isinstance(item, h5py.Dataset) and not others:
            found["/".join(name.split("/")[-3:])] = np.asarray(item)

    with h5py.File(path) as file:
        file.visititems(add)
    return found


def differences(ours: Any, native: Any, place: str = "") -> list[str]:
    """The places at which two observations differ, with both values."""
    if isinstance(native, Mapping) and isinstance(ours, Mapping):
        if list(ours) != list(native):
            return [f"{place}: {list(ours)} instead of {list(native)}"]
        return [
            difference
            for key in native
            for difference in differences(ours[key], native[key], f"{place}.{key}")
        ]
    if isinstance(native, (list, tuple)) and isinstance(ours, (list, tuple)):
        if len(ours) == len(native):
            return [
                difference
                for i, (a, b) in enumerate(zip(ours, native, strict=True))
                for difference in differences(a, b, f"{place}[{i}]")
            ]
    elif isinstance(native, NUMBERS) and isinstance(ours, NUMBERS):
        if _close(ours, native):
            return []
    elif ours == native:
        return []
    return [f"{place}: {ours} instead of {native}"]


def _close(ours: Any, native: Any) -> bool:
    if np.shape(ours) != np.shape(native):
        return False
    return np.allclose(
        np.asarray(ours, "float64"),
        np.asarray(native, "float64"),
        rtol=1e-4,
        atol=1e-6,
        equal_nan=True,
    )


def compared(
    seen: Callable[..., Any], codes: list[str], keras: Any, options: Mapping[str, Any]
) -> list[str]:
    """What both loops show differently, a line for each difference."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        native = seen(codes, folder / "native", keras, natively=True, **options)
        ours = seen(codes, folder / "ours", keras, natively=False, **options)
    for observation in (native, ours):
        for part in ("native", "ours"):
            error = observation["error"].replace(f"{name}/{part}", "FOLDER")
            observation["error"] = error
    return differences(ours, native)


def program(
    seen: Callable[..., Any], codes: Sequence[str], keras: str, options: Any
) -> str:
    """A program that shows both; it finds this module by `PYTHONPATH`."""
    lines = [
        f"import pathlib, pprint, tempfile, {keras} as keras",
        f"from observed import {seen.__name__} as seen, differences",
        "codes = [",
        *(f"    {code!r}," for code in codes),
        "]",
        f"options = {options!r}",
        "folder = pathlib.Path(tempfile.mkdtemp())",
        "ours = seen(codes, folder / 'a', keras, natively=False, **options)",
        "native = seen(codes, folder / 'b', keras, natively=True, **options)",
        "pprint.pprint(differences(ours, native))",
    ]
    return "\n".join(lines)
