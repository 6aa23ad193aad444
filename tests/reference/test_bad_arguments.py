"""Bad arguments of `hb.recorder` and `hb.recording` are refused when they are given."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hookbridge as hb

NO_COUNTS: list[Any] = [0, -1, 2.5, math.nan, math.inf, True, "3", b"3", [3], {}]
BAD: dict[str, list[Any]] = {
    "directory": [None, 3, "", b"folder", ["folder"]],
    "steps": [*NO_COUNTS, None, np.array([1, 2])],
    "weights_every": [*NO_COUNTS, np.array([1, 2])],
    "gradients": [None, 1, "Norms", "", ["norms"], np.array(["norms", "whole"])],
    "max_megabytes": [None, 0, -1, math.nan, math.inf, True, "1", 10**400],
    "then_stop": [None, 1, "no", []],
}
OPTIONAL = ("weights_every",)
OF_RECORDING = ("directory", "weights_every", "gradients", "max_megabytes")


@pytest.mark.parametrize("name", BAD)
def test_each_bad_value_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    for value in BAD[name]:
        options: dict[str, Any] = {"directory": tmp_path / "never", name: value}
        refused(name, hb.recorder, options)
        if name in OF_RECORDING:
            refused(name, hb.recording, {"weights": {"w": [1.0]}, **options})
    assert list(tmp_path.iterdir()) == []


def refused(name: str, make: Any, options: dict[str, Any]) -> None:
    """An error names the argument, and None only where None is taken."""
    said = rf"Received `{name}=.*; expected "
    with pytest.raises(hb.errors.InvalidArgumentError, match=said) as caught:
        make(**options)
    expected = str(caught.value).rpartition("; expected ")[2]
    assert bool(re.search(r"\bNone\b", expected)) is (name in OPTIONAL)


def recorded(folder: Path) -> Path:
    weights = {"w": np.ones([2])}
    with hb.recording(folder, weights) as recording:
        for _ in range(2):
            recording.step(loss=1.0, weights=weights)
    return folder


@pytest.mark.parametrize("gradients", [{"v": np.ones([2])}, {"w": np.ones([3])}])
def test_a_gradient_of_no_weight_is_refused(gradients: Any, tmp_path: Path) -> None:
    weights = {"w": np.ones([2])}
    with pytest.raises(hb.errors.InvalidArgumentError, match="Received gradients in"):
        with hb.recording(tmp_path / "run", weights) as recording:
            recording.step(loss=1.0, weights=weights, gradients=gradients)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text + text, "does not count its steps upwards"),
        (lambda text: text.replace("1.0", "1" + "0" * 400), "too large"),
    ],
)
def test_a_damaged_list_of_steps_is_named(
    damage: Any, words: str, tmp_path: Path
) -> None:
    folder = recorded(tmp_path / "run")
    steps = folder / "steps.jsonl"
    steps.write_text(damage(steps.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(hb.errors.InvalidArgumentError, match=words):
        hb.replay(folder)
