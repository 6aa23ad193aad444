"""Ports of three models: the right ones are the same, and each fault is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import ported_models as ported
import pytest

from hookbridge.insight.reference.comparison import compare


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reference runs, recorded once."""
    found = {}
    for name in ported.SETTINGS:
        found[name] = tmp_path_factory.mktemp("reference") / "run"
        ported.train_in_session(name, found[name])
    return found


@pytest.mark.parametrize("name", ported.SETTINGS)
def test_right_port_to_numpy(
    name: str, references: dict[str, Path], tmp_path: Path
) -> None:
    ported.train_in_numpy(name, references[name], tmp_path / "port")
    result = compare(references[name], tmp_path / "port")
    assert result.is_same, str(result)


@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm"])
def test_right_port_to_keras(
    keras: Any, name: str, references: dict[str, Path], tmp_path: Path
) -> None:
    ported.train_in_keras(keras, name, references[name], tmp_path / "port")
    result = compare(references[name], tmp_path / "port")
    assert result.is_same, str(result)
    assert all(layer.measures for layer in result.layers), str(result)


def by_epoch(step: int) -> float:
    return ported.decayed(step // 5 * 5)


def other_order() -> list[Any]:
    data = ported.batches("mlp")
    return [*data[:2], data[3], data[2], *data[4:]]


def shifted_labels() -> list[Any]:
    return [{**b, "y": np.roll(b["y"], 1)} for b in ported.batches("mlp")]


def transposed() -> Any:
    first = ported.initial("mlp")
    return {**first, "hidden/kernel": first["hidden/kernel"].T}


def another_weight() -> Any:
    first = ported.initial("lstm")
    return {**first, "out/kernel": first["out/kernel"] * 1.001}


# A suspect -> the model, the settings that make the fault, and what is found.
FAULTS: dict[str, tuple[str, dict[str, Any], str, int, str]] = {
    "a sum for a mean": ("mlp", {"sums": True}, "forward", 1, "loss"),
    "schedule by epoch": ("mlp", {"rate": by_epoch}, "update", 2, "learning_rate"),
    "epsilon": ("mlp", {"epsilon": 1e-5}, "update", 1, ""),
    "no l2": ("mlp", {"l2": 0.0}, "forward", 1, "loss"),
    "momentum of Batch": ("cnn", {"momentum": 0.99}, "state", 1, "bn/moving_"),
    "transposed": ("mlp", {"weights": transposed}, "initial weights", 1, "hidden/"),
    "order of batches": ("mlp", {"data": other_order}, "data", 3, ""),
    "initial": ("lstm", {"weights": another_weight}, "initial weights", 1, "out/k"),
    "clipping": ("lstm", {"clip": "value"}, "update", 1, ""),
    "dropout": ("mlp", {"dropout": 0.2}, "forward", 1, "loss"),
    "shifted": ("mlp", {"data": shifted_labels}, "data", 1, "y"),
    "decay": ("decayed mlp", {"decay": "before"}, "update", 1, ""),
}


@pytest.mark.parametrize("suspect", FAULTS)
def test_fault_is_found(
    suspect: str, references: dict[str, Path], tmp_path: Path
) -> None:
    """In the right layer, at the right step, and its cause is among the suspects."""
    name, faults, layer, step, variable = FAULTS[suspect]
    made = {k: v() if k in ("data", "weights") else v for k, v in faults.items()}
    ported.train_in_numpy(name, references[name], tmp_path / "port", **made)
    result = compare(references[name], tmp_path / "port")
    text = str(result)
    assert result.first is not None, text
    assert (result.layer, result.first.step) == (layer, step), text
    assert result.first.name.startswith(variable), text
    assert any(suspect in each for each in result.suspects), text


@pytest.mark.parametrize(
    ("name", "faults", "layer"),
    [
        ("mlp", {"sums": True}, "forward"),
        ("mlp", {"l2": 0.0}, "forward"),
        ("mlp", {"dropout": 0.2}, "forward"),
        ("mlp", {"epsilon": 1e-5}, "update"),
        ("cnn", {"momentum": 0.99}, "state"),
        ("lstm", {"clip": "value"}, "update"),
    ],
)
def test_fault_in_keras_is_found(
    keras: Any,
    name: str,
    faults: dict[str, Any],
    layer: str,
    references: dict[str, Path],
    tmp_path: Path,
) -> None:
    ported.train_in_keras(keras, name, references[name], tmp_path / "port", **faults)
    result = compare(references[name], tmp_path / "port")
    assert result.first is not None, str(result)
    assert (result.layer, result.first.step) == (layer, 1), str(result)
