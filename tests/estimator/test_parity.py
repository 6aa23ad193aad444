"""The same numbers as TensorFlow 2.15's own Estimator, on every version.

`record_golden.py` has recorded `golden/observed.json` on 2.15. On 2.15 these tests
show that the recording is right.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import numpy as np
import pytest
import tensorflow as tf
from restored_estimator import RESTORED

GOLDEN = Path(__file__).parent / "golden"
RECORDED: dict[str, Any] = json.loads((GOLDEN / "observed.json").read_text())
CHECKPOINTS = sorted(path.name for path in GOLDEN.glob("checkpoint_*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", scenarios.SCENARIOS if RESTORED else ["custom"])
def test_numbers_and_names_of_files(
    subtests: pytest.Subtests, name: str, tmp_path: Path
) -> None:
    recorded, now = RECORDED[name], scenarios.observe(name, tmp_path)
    assert len(now["losses"]) == scenarios.STEPS
    np.testing.assert_allclose(now["losses"], recorded["losses"], rtol=1e-5)
    assert list(now["evaluation"]) == list(recorded["evaluation"])
    found, expected = (list(each["evaluation"].values()) for each in (now, recorded))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for what in ("variables", "train_tags", "eval_tags"):
        with subtests.test(str(what)):
            assert recorded[what]
            assert now[what] == recorded[what]


def losses(folder: Path) -> list[float]:
    return [
        value
        for _, tag, value in scenarios.events(folder)
        if tag == "loss_1" and value is not None
    ]


def test_checkpoints_of_all_versions_go_on_alike(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    """This version writes the values that 2.15 writes, and reads those of others."""
    versions = {tuple(map(int, name.split("_")[1:])) for name in CHECKPOINTS}
    assert min(versions) == (2, 15) < (2, 16) <= max(versions)
    straight = scenarios.custom(tmp_path / "straight")
    straight.train(scenarios.input_fn(), steps=scenarios.STEPS)
    here = tf.train.load_checkpoint(str(tmp_path / "straight"))
    there = tf.train.load_checkpoint(str(GOLDEN / "checkpoint_2_15"))
    names = there.get_variable_to_shape_map()
    assert here.get_variable_to_shape_map() == names
    for name in names:
        np.testing.assert_allclose(
            here.get_tensor(name), there.get_tensor(name), rtol=1e-4, atol=1e-7
        )
    straight.train(scenarios.input_fn(), steps=3)
    expected = losses(tmp_path / "straight")[-3:]
    for checkpoint in CHECKPOINTS:
        with subtests.test(str(checkpoint)):
            folder = tmp_path / checkpoint
            shutil.copytree(GOLDEN / checkpoint, folder)
            estimator = scenarios.custom(folder)
            assert estimator.get_variable_value("global_step") == scenarios.STEPS
            result = estimator.evaluate(scenarios.input_fn(repeat=False))
            assert result["loss"] == pytest.approx(
                RECORDED["custom"]["evaluation"]["loss"], rel=1e-5
            )
            estimator.train(scenarios.input_fn(), steps=3)
            np.testing.assert_allclose(losses(folder), expected, rtol=1e-5)
