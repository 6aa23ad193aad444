"""Gradients and weights in another order are told by their numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy_ports
import ported_models
import pytest
from port_frameworks import InNumPy
from real_ports import RIGHT, train

import hookbridge as hb
from hookbridge.reference.causes.causes_in_loss import product_of_dimensions

Change = Callable[[Any], Any]
# A program, one of its variables, what is done to it, and what is said of that.
Rearranged = tuple[str, str, Change, str]


@pytest.fixture(scope="module")
def references(
    real_references: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The four programs, and one with a square matrix."""
    mlp = tmp_path_factory.mktemp("reference") / "mlp"
    ported_models.train_in_session("mlp", mlp)
    return {**real_references, "mlp": mlp}


def blocks(*order: int) -> Change:
    """Blocks of columns in another order."""

    def change(value: Any) -> Any:
        parts = np.split(value, len(order), -1)
        return np.concatenate([parts[n] for n in order], -1)

    return change


def channels_first(value: Any) -> Any:
    """The rows of a flattened picture of 4 x 4 x 3."""
    order = np.arange(48).reshape(4, 4, 3).transpose(2, 0, 1).ravel()
    return value[order]


def forget_bias(value: Any) -> Any:
    shifted = value.copy()
    shifted[..., 8:12] += 1.0
    return shifted


def swapped(value: Any) -> Any:
    return np.swapaxes(value, 0, 1)


def flipped(value: Any) -> Any:
    return value[::-1, ::-1]


def rolled(value: Any) -> Any:
    return np.roll(value, 1, -1)


# What is done to a gradient of a hand-written backward pass -> what is said of it.
OF_GRADIENTS: list[Rearranged] = [
    ("policy", "policy/dense/kernel", channels_first, "channels first for channels"),
    ("policy", "policy/dense/kernel", rolled, "with its columns in another order"),
    ("autoencoder", "conv2/kernel", swapped, "with its first two axes swapped"),
    ("autoencoder", "conv2/kernel", flipped, "flipped"),
    ("lstm", "rnn/kernel", blocks(0, 2, 1, 3), "4 blocks of columns as 1, 3, 2, 4"),
    ("lstm", "out/kernel", np.zeros_like, "no gradient reaches `out/kernel`"),
    ("mlp", "hidden/kernel", np.transpose, "comes transposed"),
]
# What is done to an initial weight.
OF_WEIGHTS: list[Rearranged] = [
    ("lstm", "rnn/kernel", blocks(0, 2, 1, 3), "4 blocks of columns as 1, 3, 2, 4"),
    ("lstm", "rnn/bias", forget_bias, "+1 in block 3 of 4: the forget bias"),
    ("policy", "policy/dense/kernel", channels_first, "channels first for channels"),
    ("autoencoder", "conv2/kernel", flipped, "flipped"),
    ("mlp", "hidden/kernel", np.transpose, "comes transposed"),
]


@pytest.mark.parametrize("case", OF_GRADIENTS)
def test_gradient_in_another_order(
    case: Rearranged,
    references: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the cause that is named first, with the variable."""
    program, name, change, told = case
    if program == "mlp":
        right = numpy_ports.FORWARD["mlp"]

        def forward(*args: Any) -> tuple[Any, Any]:
            features, back = right(*args)

            def changed(d: Any) -> dict[str, Any]:
                found = back(d)
                return found | {name: change(found[name])}

            return features, changed

        monkeypatch.setitem(numpy_ports.FORWARD, "mlp", forward)
        # L2 of the weight is not transposed with the gradient of the data.
        numpy_ports.train_in_numpy("mlp", references["mlp"], tmp_path / "port")
    else:
        numpy, plain = InNumPy(), InNumPy().gradients

        def gradients(loss: Any, of: Any) -> dict[str, Any]:
            found = plain(loss, of)
            return found | {name: change(found[name])}

        numpy.gradients = gradients  # type: ignore[method-assign]
        train(RIGHT[program], references[program], tmp_path / "port", numpy)
    result = hb.compare(references[program], tmp_path / "port")
    assert result.layer == "gradients", str(result)
    assert [c.name for c in result.causes][:1] == ["order of a gradient"], str(result)
    assert told in result.causes[0].text and name in result.causes[0].text


@pytest.mark.parametrize("case", OF_WEIGHTS)
def test_weight_in_another_order(
    case: Rearranged,
    references: dict[str, Path],
    tmp_path: Path,
) -> None:
    program, name, change, told = case
    replay = hb.replay(references[program])
    weights = replay.weights | {name: change(replay.weights[name])}
    with hb.recording(tmp_path / "port", weights) as r:
        r.step(loss=1.0, weights=weights)
    result = hb.compare(references[program], tmp_path / "port")
    assert [c.name for c in result.causes][:1] == ["order of a weight"], str(result)
    assert told in result.causes[0].text and name in result.causes[0].text


def test_a_coincidence_is_no_product() -> None:
    """100 x 784 is one; what is 5 % or 1 % off is none."""
    batch = {"x": np.zeros([100, 784]), "y": np.zeros([100])}
    assert product_of_dimensions(78_400.0, batch) == (100, 784)
    assert product_of_dimensions(1 / 784, batch) == (784,)
    for factor in (105.0, 99.0, 1 / 101, 745.0, 78_000.0, -100.0):
        assert not product_of_dimensions(factor, batch)
