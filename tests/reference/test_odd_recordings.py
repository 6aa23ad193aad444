"""Recordings whose numbers are not finite, that are damaged, or of any type."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hookbridge as hb
from hookbridge import errors
from hookbridge.cli import main
from hookbridge.reference.comparison import compare

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
