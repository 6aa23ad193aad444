"""Ports of three models: the right ones are the same, and each fault is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy_ports
import ported_models
import pytest
from one_keras import one_keras

import hookbridge as hb
from hookbridge.cli import main
from hookbridge.reference.comparison import compare


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reference runs, recorded once."""
    found = {}
    for name in ported_models.SETTINGS:
        found[name] = tmp_path_factory.mktemp("reference") / "run"
        ported_models.train_in_session(name, found[name])
    return found


@pytest.mark.parametrize("name", ported_models.SETTINGS)
def test_right_port_to_numpy(
    name: str, references: dict[str, Path], tmp_path: Path
) -> None:
    numpy_ports.train_in_numpy(name, references[name], tmp_path / "port")
    result = compare(references[name], tmp_path / "port")
    assert result.is_same, str(result)


@one_keras
@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm"])
def test_right_port_to_keras(
    keras: Any, name: str, references: dict[str, Path], tmp_path: Path
) -> None:
    ported_models.train_in_keras(keras, name, references[name], tmp_path / "port")
    result = compare(references[name], tmp_path / "port")
    assert result.is_same, str(result)
    assert all(layer.measures for layer in result.layers), str(result)


def by_epoch(step: int) -> float:
    return ported_models.decayed(step // 5 * 5)


def other_order() -> list[Any]:
    data = ported_models.batches("mlp")
    return [*data[:2], data[3], data[2], *data[4:]]


def shifted_labels() -> list[Any]:
    return [{**b, "y": np.roll(b["y"], 1)} for b in ported_models.batches("mlp")]


def transposed() -> Any:
    first = ported_models.initial("mlp")
    return {**first, "hidden/kernel": first["hidden/kernel"].T}


def another_weight() -> Any:
    first = ported_models.initial("lstm")
    return {**first, "out/kernel": first["out/kernel"] * 1.001}


# Causes that the ports to NumPy show too.
EXHAUSTIVE = pytest.mark.exhaustive
# A cause -> the model, the settings that make the fault, and what is found.
FAULTS: dict[str, tuple[str, dict[str, Any], str, int, str]] = {
    "a sum for a mean": ("mlp", {"sums": True}, "forward", 1, "loss"),
    "a staircase": (
        "mlp",
        {"rate": by_epoch},
        "update",
        2,
        "learning_rate",
    ),
    "epsilon": ("mlp", {"epsilon": 1e-5}, "update", 1, ""),
    "have 0.001 times": (
        "mlp",
        {"l2": 0.0},
        "forward",
        1,
        "loss",
    ),
    "momentum of Batch": ("cnn", {"momentum": 0.99}, "state", 1, "bn/moving_"),
    "transposed": ("mlp", {"weights": transposed}, "initial weights", 1, "hidden/"),
    "order of batches": ("mlp", {"data": other_order}, "data", 3, ""),
    "no cause that is known explains it; `hb.replay(...).weights`": (
        "lstm",
        {"weights": another_weight},
        "initial weights",
        1,
        "out/k",
    ),
    "clips by value 0.02": ("lstm", {"clip": "value"}, "update", 1, ""),
    "no cause that is known": ("mlp", {"dropout": 0.2}, "forward", 1, "loss"),
    "shifted": ("mlp", {"data": shifted_labels}, "data", 1, "y"),
    "no cause": ("decayed mlp", {"decay": "before"}, "update", 1, ""),
}


@pytest.mark.parametrize("cause", FAULTS)
def test_fault_is_found(
    cause: str, references: dict[str, Path], tmp_path: Path
) -> None:
    """In the right layer, at the right step, and its cause is named first."""
    name, faults, layer, step, variable = FAULTS[cause]
    made = {k: v() if k in ("data", "weights") else v for k, v in faults.items()}
    numpy_ports.train_in_numpy(name, references[name], tmp_path / "port", **made)
    result = compare(references[name], tmp_path / "port")
    text = str(result)
    assert result.first is not None, text
    assert (result.layer, result.first.step) == (layer, step), text
    assert result.first.name.startswith(variable), text
    first = str(result.causes[0]) if result.causes else text
    assert cause in first, text


@one_keras
@pytest.mark.parametrize(
    ("name", "faults", "layer"),
    [
        ("mlp", {"sums": True}, "forward"),
        pytest.param("mlp", {"l2": 0.0}, "forward", marks=EXHAUSTIVE),
        pytest.param("mlp", {"dropout": 0.2}, "forward", marks=EXHAUSTIVE),
        ("mlp", {"epsilon": 1e-5}, "update"),
        ("cnn", {"momentum": 0.99}, "state"),
        pytest.param("lstm", {"clip": "value"}, "update", marks=EXHAUSTIVE),
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
    ported_models.train_in_keras(
        keras, name, references[name], tmp_path / "port", **faults
    )
    result = compare(references[name], tmp_path / "port")
    assert result.first is not None, str(result)
    assert (result.layer, result.first.step) == (layer, 1), str(result)


def noisy_port(folder: Path, *, rounding: float, gradients: bool) -> Path:
    """Adam on a softmax with a bias that all classes share.

    The loss does not depend on this bias: its gradient is what the sum of the others
    was rounded by, and Adam moves it by the whole rate in this direction.
    """
    rng = np.random.RandomState(3)
    held = {"kernel": rng.randn(5, 3), "shared": np.zeros(1)}
    weights = {name: value.astype("float32") for name, value in held.items()}
    with hb.recording(folder, weights, gradients="whole") as recording:
        for step in range(1, 4):
            x = rng.randn(32, 5).astype("float32")
            y = np.eye(3)[rng.randint(3, size=32)]
            scores = np.exp(x @ weights["kernel"] + weights["shared"])
            parts = scores / scores.sum(1, keepdims=True)
            found = {
                "kernel": x.T @ (parts - y) / 32,
                "shared": np.array([rounding], "float32"),
            }
            # The first step of Adam is the rate, whatever the size of a gradient.
            weights = {
                name: value - np.float32(0.01) * np.sign(found[name]) / step
                for name, value in weights.items()
            }
            recording.step(
                loss=-np.log(parts[y > 0]).mean(),
                weights=weights,
                gradients=found if gradients else None,
            )
    return folder


def test_update_of_a_gradient_that_is_rounding_is_not_judged(tmp_path: Path) -> None:
    """Whichever of the two has recorded gradients."""
    flipped = noisy_port(tmp_path / "flipped", rounding=2e-9, gradients=True)
    bare = noisy_port(tmp_path / "bare", rounding=-3e-9, gradients=False)
    for pair in ((flipped, bare), (bare, flipped)):
        result = compare(*pair)
        assert result.is_same, str(result)
        assert "since their gradients are rounding: shared" in str(result)


def test_update_without_gradients_says_that_they_may_be_the_cause(
    tmp_path: Path,
) -> None:
    flipped = noisy_port(tmp_path / "flipped", rounding=2e-9, gradients=False)
    bare = noisy_port(tmp_path / "bare", rounding=-3e-9, gradients=False)
    result = compare(bare, flipped)
    assert result.first is not None
    assert result.first.name == "shared", str(result)
    told = "the gradient of `shared`, which the reference has not recorded"
    assert told in map(str, result.causes)


PORT = """
import sys
import numpy as np
import hookbridge as hb

replay = hb.replay(sys.argv[1])
with hb.recording(sys.argv[2], replay.weights) as r:
    for batch in replay.batches:
        r.step(loss=np.float32(1.5), weights=replay.weights, batch=batch)
assert "tensorflow" not in sys.modules
from hookbridge.cli import main
code = main(["compare", sys.argv[1], sys.argv[2], "--page", sys.argv[3]])
assert "tensorflow" not in sys.modules
sys.exit(code)
"""


def test_a_port_needs_no_tensorflow(tmp_path: Path, repo_root: Path) -> None:
    ported_models.train_in_session("mlp", tmp_path / "run")
    page = tmp_path / "page.html"
    words = [str(tmp_path / "run"), str(tmp_path / "port"), str(page)]
    done = subprocess.run(
        [sys.executable, "-c", PORT, *words],
        cwd=repo_root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "First difference: forward, step 1, `loss`" in done.stdout
    assert "gradients        not compared" in done.stdout
    html = page.read_text()
    assert "First difference: forward" in html and html.count("<svg") == 3


@pytest.mark.both_tensorflows
def test_compare_tells_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ported_models.train_in_session("lstm", tmp_path / "run")
    numpy_ports.train_in_numpy("lstm", tmp_path / "run", tmp_path / "port", clip="")
    names = tmp_path / "names.json"
    names.write_text('{"out/kernel": "out/kernel"}')
    words = ["compare", str(tmp_path / "run"), str(tmp_path / "port")]
    assert main([*words, "--format=json", f"--names={names}"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["layer"], told["first"]["step"]) == ("update", 1)
    assert main([*words[:2], words[1], "--format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["same"]
    assert main([*words, "--tolerance=1"]) == 0
    assert main([*words, "--names=no.json"]) == 2
