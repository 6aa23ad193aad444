"""Causes by evidence: planted mistakes in ports of four programs are named first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import real_programs
from planted_mistakes import MISTAKES, Mistake
from real_ports import RIGHT, NumPyOptimizer, train
from small_autodiff import NumPy

import hookbridge as hb

ONE_KERAS = True


class InNumPy(NumPy):
    def optimizer(self, port: Any, arrays: Any) -> Any:
        return NumPyOptimizer(port, arrays, self.array)


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The four programs, recorded once."""
    found = {}
    for name in RIGHT:
        found[name] = tmp_path_factory.mktemp("reference") / name
        real_programs.record(name, found[name])
    return found


@pytest.mark.parametrize("program", RIGHT)
def test_right_port(program: str, references: dict[str, Path], tmp_path: Path) -> None:
    train(RIGHT[program], references[program], tmp_path / "port", InNumPy())
    result = hb.compare(references[program], tmp_path / "port")
    assert result.is_same, str(result)


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


@pytest.mark.parametrize("mistake", CASES)
def test_planted_mistake(
    mistake: Mistake, references: dict[str, Path], tmp_path: Path
) -> None:
    """It is the cause that is named first."""
    port = replace(RIGHT[mistake.program], **mistake.fields)
    train(port, references[mistake.program], tmp_path / "port", InNumPy())
    result = hb.compare(references[mistake.program], tmp_path / "port")
    assert not result.is_same, str(result)
    assert [c.name for c in result.causes][:1] == [mistake.cause], str(result)
