"""Causes by evidence: planted mistakes in ports of four programs are named first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import real_programs
from planted_mistakes import MISTAKES, Mistake
from port_frameworks import FRAMEWORKS, InKeras, InNumPy, framework
from real_ports import RIGHT, RIGHT_WITH_ADAM, train

import hookbridge as hb

ONE_KERAS = True


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("program", RIGHT)
def test_right_port(
    program: str, name: str, real_references: dict[str, Path], tmp_path: Path
) -> None:
    train(RIGHT[program], real_references[program], tmp_path / "port", framework(name))
    result = hb.compare(real_references[program], tmp_path / "port")
    assert result.is_same, str(result)


@pytest.fixture(scope="module")
def adam_references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The four programs, each of them trained by Adam."""
    found = {}
    for name in RIGHT:
        found[name] = tmp_path_factory.mktemp("adam") / name
        real_programs.record(name, found[name], adam=True)
    return found


@pytest.mark.parametrize("name", [*FRAMEWORKS, "keras"])
@pytest.mark.parametrize("program", RIGHT_WITH_ADAM)
def test_right_port_with_adam(
    keras: Any,
    program: str,
    name: str,
    adam_references: dict[str, Path],
    tmp_path: Path,
) -> None:
    """Adam of each framework, with its own epsilon and its own place of it."""
    made = InKeras(keras) if name == "keras" else framework(name)
    reference, port = adam_references[program], tmp_path / "port"
    train(RIGHT_WITH_ADAM[program], reference, port, made)
    result = hb.compare(reference, port)
    assert result.is_same, str(result)
    if name == "keras" and program == "autoencoder":  # it has tiny gradients
        assert "the same except where Adam adds epsilon" in str(result)


def test_right_port_to_adagrad_of_keras(
    keras: Any, real_references: dict[str, Path], tmp_path: Path
) -> None:
    reference, port = real_references["normalized"], tmp_path / "port"
    train(RIGHT["normalized"], reference, port, InKeras(keras))
    assert hb.compare(reference, port).is_same


def test_momentum_of_keras(
    keras: Any, real_references: dict[str, Path], tmp_path: Path
) -> None:
    """It keeps the rate of each step: no port with a schedule is right."""
    train(RIGHT["policy"], real_references["policy"], tmp_path / "port", InKeras(keras))
    result = hb.compare(real_references["policy"], tmp_path / "port")
    assert [c.name for c in result.causes][:1] == ["rate in momentum"], str(result)


# One of each family; `make test-all` has all.
SAMPLE = {
    "untied weights",
    "padding of stride 2",
    "L2 of one left out",
    "weight decay for L2",
    "clipped each by its norm",
    "sum, with the same L2",
    "mask of lengths",
    "unbiased variance",
}
CASES = [
    pytest.param(
        mistake,
        id=f"{mistake.program}: {mistake.text}",
        marks=() if mistake.text in SAMPLE else pytest.mark.exhaustive,
    )
    for mistake in MISTAKES
]


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("mistake", CASES)
def test_planted_mistake(
    mistake: Mistake, name: str, real_references: dict[str, Path], tmp_path: Path
) -> None:
    """It is the cause that is named first."""
    port = replace(RIGHT[mistake.program], **mistake.fields)
    train(port, real_references[mistake.program], tmp_path / "port", framework(name))
    result = hb.compare(real_references[mistake.program], tmp_path / "port")
    assert not result.is_same, str(result)
    assert [c.name for c in result.causes][:1] == [mistake.cause], str(result)


def _other_layer(numpy: Any) -> None:
    numpy.sigmoid = numpy.tanh


def _dropout(numpy: Any) -> None:
    draws, relu = np.random.RandomState(1), numpy.relu
    numpy.relu = lambda x: relu(x) * ((draws.rand(*x.shape) < 0.8) / 0.8)


def _half_a_gradient(numpy: Any) -> None:
    whole = numpy.gradients

    def gradients(loss: Any, of: Any) -> Any:
        found = whole(loss, of)
        name = next(iter(found))
        return {**found, name: found[name] / 2}

    numpy.gradients = gradients


@pytest.mark.parametrize(
    ("program", "mistake"),
    [
        ("autoencoder", _other_layer),
        ("normalized", _dropout),
        ("policy", _dropout),
        ("lstm", _half_a_gradient),
    ],
)
@pytest.mark.exhaustive
def test_what_is_not_known_is_not_named(
    program: str, mistake: Any, real_references: dict[str, Path], tmp_path: Path
) -> None:
    """No cause is better than a wrong one."""
    numpy = InNumPy()
    mistake(numpy)
    train(RIGHT[program], real_references[program], tmp_path / "port", numpy)
    result = hb.compare(real_references[program], tmp_path / "port")
    assert not result.is_same
    assert not result.causes, str(result)
    assert "no cause that is known explains it" in str(result)
