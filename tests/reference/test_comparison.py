"""Ports of three models: the right ones are the same, and each fault is found."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ported_models
import pytest
from one_keras import one_keras

import hookbridge as hb
from hookbridge import errors
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
    ported_models.train_in_numpy(name, references[name], tmp_path / "port")
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
    ported_models.train_in_numpy(name, references[name], tmp_path / "port", **made)
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


NAN, INF = math.nan, math.inf


def small_port(
    folder: Path,
    *,
    losses: Any = (1.0, 0.5, 0.25),
    weights: Any = (0.9, 0.8, 0.7),
    initial: float = 1.0,
    x: Any = 1.0,
    **options: Any,
) -> Path:
    """A port with one weight and three steps."""

    def filled(value: float) -> dict[str, Any]:
        return {"w": np.array([[value, 1.0]], "float32")}

    with hb.recording(folder, filled(initial)) as recording:
        for step in range(3):
            recording.step(
                loss=losses[step],
                weights=filled(weights[step]),
                batch={"x": np.asarray(x)},
                gradients=filled(weights[step]),
                learning_rate=options.get("rate", 0.1),
            )
    return folder


# What a port has that the reference has not -> the layer, the step, and the cause.
NOT_FINITE: list[tuple[dict[str, Any], str, int, str]] = [
    ({"losses": [NAN] * 3}, "forward", 1, "finite in the reference, NaN in the port"),
    ({"losses": [1, 0.5, INF]}, "forward", 3, "a loss that is not finite: finite"),
    ({"losses": [-INF, 0.5, 0.25]}, "forward", 1, "in the reference, -inf in the p"),
    ({"weights": [0.9, NAN, NAN]}, "gradients", 2, "of `w` that are not finite"),
    ({"initial": NAN}, "initial weights", 1, "of `w` that are not finite: finite"),
    ({"x": NAN}, "data", 1, "of `x` that are not finite: finite"),
    ({"rate": NAN}, "update", 1, "of `learning_rate` that are not finite: finite"),
]


@pytest.mark.parametrize(("fault", "layer", "step", "cause"), NOT_FINITE)
def test_what_is_not_finite_is_found(
    fault: dict[str, Any], layer: str, step: int, cause: str, tmp_path: Path
) -> None:
    """In either of the two; each is the same as itself."""
    good = small_port(tmp_path / "good")
    bad = small_port(tmp_path / "bad", **fault)
    result = compare(good, bad)
    assert result.first is not None, str(result)
    assert (result.layer, result.first.step) == (layer, step), str(result)
    assert cause in str(result)
    assert "frozen" not in str(result)
    json.dumps(result.to_json(), allow_nan=False)
    assert compare(bad, good).layer == layer
    assert compare(bad, bad).is_same, str(compare(bad, bad))
    assert main(["compare", f"--page={tmp_path / 'page.html'}", str(good), str(bad)])
    assert "not finite" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_numbers_that_are_not_finite_are_told_apart(tmp_path: Path) -> None:
    kinds = {"nan": NAN, "inf": INF, "minus": -INF}
    for name, value in kinds.items():
        small_port(tmp_path / name, losses=[value] * 3)
        weights: dict[str, Any] = {"losses": [1.0] * 3, "weights": [value] * 3}
        small_port(tmp_path / f"{name} weights", **weights)
        text = (tmp_path / name / "steps.jsonl").read_text(encoding="utf-8")
        for line in text.splitlines():
            json.loads(line, parse_constant=pytest.fail)
        assert str(hb.replay(tmp_path / name).losses[0]) == str(value)
    for kind in ("", " weights"):
        for one in kinds:
            for other in kinds:
                result = compare(tmp_path / f"{one}{kind}", tmp_path / f"{other}{kind}")
                assert result.is_same == (one == other), str(result)


@pytest.mark.parametrize("text", ["null", "NaN"])
def test_other_forms_of_nan_are_read(text: str, tmp_path: Path) -> None:
    """Those of old recordings, and of Python's `json`."""
    port = small_port(tmp_path / "port", losses=[NAN] * 3)
    old = shutil.copytree(port, tmp_path / "old")
    lines = (old / "steps.jsonl").read_text(encoding="utf-8")
    assert '"NaN"' in lines
    (old / "steps.jsonl").write_text(lines.replace('"NaN"', text), encoding="utf-8")
    assert compare(port, old).is_same
    assert math.isnan(hb.replay(old).losses[0] or 0.0)


def test_one_infinite_number_hides_no_other_difference(tmp_path: Path) -> None:
    """Neither the later losses, nor other weights and elements."""
    one = small_port(tmp_path / "one", losses=[INF, 0.5, 0.25])
    other = small_port(tmp_path / "other", losses=[INF, 0.5, 0.3])
    result = compare(one, other)
    assert result.first is not None
    assert (result.layer, result.first.step) == ("forward", 3), str(result)
    for name, moved in (("a", 0.5), ("b", 0.75)):
        begin = {"k": np.ones(2), "b": np.ones(3)}
        with hb.recording(tmp_path / name, begin) as recording:
            after = {"k": np.array([NAN, moved]), "b": np.full(3, moved)}
            gradients = {"k": np.array([INF, 1.0]), "b": np.ones(3)}
            recording.step(loss=1.0, weights=after, gradients=gradients)
    result = compare(tmp_path / "a", tmp_path / "b")
    found = {m.name for layer in result.layers for m in layer.measures if m.differs}
    assert found == {"k", "b"}, str(result)


def test_a_loss_of_zero_is_compared(tmp_path: Path) -> None:
    zero = small_port(tmp_path / "zero", losses=[0.0, 0.0, 0.0])
    result = compare(zero, small_port(tmp_path / "port"))
    assert result.layer == "forward", str(result)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (1.0, 2.0),
        (np.arange(5, dtype="uint8"), np.arange(5, dtype="uint8")[::-1]),
        (np.array([True, False]), np.array([True, True])),
        (np.array([1 + 1j]), np.array([1 + 2j])),
    ],
)
def test_batches_of_any_type_and_rank(ours: Any, theirs: Any, tmp_path: Path) -> None:
    one = small_port(tmp_path / "one", x=ours)
    result = compare(one, small_port(tmp_path / "other", x=theirs))
    assert result.layer == "data", str(result)
    assert compare(one, one).is_same


def emptied(file: str, text: str | None) -> Callable[[Path], None]:
    """Replaces a file of a recording by another text, or removes it."""

    def damage(folder: Path) -> None:
        (folder / file).unlink()
        if text is not None:
            (folder / file).write_text(text, encoding="utf-8")

    return damage


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no arrays": (
        lambda f: shutil.rmtree(f / "arrays"),
        "0.npz' of the recording is mis",
    ),
    "no step": (emptied("arrays/1.npz", None), "1.npz' of the recording is missing"),
    "half a file": (emptied("arrays/0.npz", "PK"), "is damaged"),
    "list": (emptied("recording.json", "[]"), "which has no recording"),
    "number": (emptied("recording.json", "3"), "which has no recording"),
    "bare": (emptied("recording.json", '{"format": 1}'), "which has no recording"),
    "odd": (
        emptied("recording.json", '{"format": 1, "variables": {"w": 3}}'),
        "which has no recording",
    ),
    "lines": (emptied("steps.jsonl", "[]\n"), "which has no recording"),
    "loss": (
        emptied("steps.jsonl", '{"step": 1, "batch": {}, "loss": "x"}\n'),
        "'x' is not a number",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_recording_is_refused(damage: str, tmp_path: Path) -> None:
    good = small_port(tmp_path / "good")
    bad = shutil.copytree(good, tmp_path / "bad")
    break_it, message = DAMAGES[damage]
    break_it(bad)
    for pair in ((good, bad), (bad, good)):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            compare(*pair)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        list(hb.replay(bad).batches)


@pytest.mark.parametrize(
    "options",
    [
        {"names": {"w": 3}},
        {"names": {"w": ["w"]}},
        {"names": {"w": None}},
        {"names": [1]},
        {"tolerance": True},
        {"tolerance": NAN},
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    port = small_port(tmp_path / "port")
    with pytest.raises(errors.InvalidArgumentError, match=r"Received `(names|toler)"):
        compare(port, port, **options)


@pytest.mark.parametrize("shapes", [None, [1], "w", {"w": 3}, {"w": "ab"}, {1: (2,)}])
def test_match_refuses_what_has_no_shapes(shapes: Any, tmp_path: Path) -> None:
    replay = hb.replay(small_port(tmp_path / "port"))
    with pytest.raises(errors.InvalidArgumentError, match="Received `shapes"):
        replay.match(shapes)


def test_page_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = str(small_port(tmp_path / "port"))
    for page in (tmp_path / "no" / "page.html", tmp_path, ""):
        assert main(["compare", f"--page={page}", port, port]) == 2
        out, err = capsys.readouterr()
        assert "Received --page=" in err
        assert not out


def test_steps_outside_the_block_are_refused(tmp_path: Path) -> None:
    weights = {"w": np.ones(2)}
    recording = hb.recording(tmp_path / "port", weights)
    with pytest.raises(errors.InvalidArgumentError, match="step before the `with`"):
        recording.step(loss=1.0, weights=weights)
    with recording:
        recording.step(loss=1.0, weights=weights)
    with pytest.raises(errors.InvalidArgumentError, match="step after the `with`"):
        recording.step(loss=1.0, weights=weights)
    with pytest.raises(errors.InvalidArgumentError, match="a second time"), recording:
        pass
    assert len(hb.replay(tmp_path / "port")) == 1
