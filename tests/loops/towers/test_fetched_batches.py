"""Towers that each fetch a batch from the input, and the devices of towers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from replicated_model import BATCH, STEPS, estimator, examples, model_fn

import hookbridge as hb

v1 = tf.compat.v1


def input_fn(batch_size: int, change: Callable[[Any], Any] | None = None) -> Any:
    def make() -> Any:
        dataset = tf.data.Dataset.from_tensor_slices(examples()).batch(batch_size)
        if change is None:
            return dataset
        features, labels = v1.data.make_one_shot_iterator(dataset).get_next()
        return change(features), labels

    return make


def values(job: Any) -> dict[str, Any]:
    return {name: job.get_variable_value(name) for name in job.get_variable_names()}


@pytest.mark.slow
def test_a_batch_each_gives_the_weights_of_one_large_batch(tmp_path: Path) -> None:
    towers = 4
    plain = estimator(model_fn, tmp_path / "plain").train(input_fn(BATCH))
    replicated = hb.replicate_model_fn(model_fn, num_towers=towers, batches="fetch")
    ours = estimator(replicated, tmp_path / "towers")
    ours.train(input_fn(BATCH // towers))
    expected = values(plain)
    found = values(ours)
    assert found["global_step"] == STEPS
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[name], value, rtol=1e-4, atol=1e-6, err_msg=name
        )
    # Every example counts in an evaluation, also if the last batch is smaller.
    native, bridged = (job.evaluate(input_fn(7)) for job in (plain, ours))
    assert native.keys() == bridged.keys()
    for name, value in native.items():
        assert bridged[name] == pytest.approx(value, rel=1e-4), name


def test_batches_left_over_make_no_step(tmp_path: Path) -> None:
    replicated = hb.replicate_model_fn(model_fn, num_towers=2, batches="fetch")
    job = estimator(replicated, tmp_path).train(input_fn(BATCH))
    assert values(job)["global_step"] == STEPS // 2  # 40 examples: 5 batches


def test_inputs_that_were_changed_after_the_iterator_are_refused(
    tmp_path: Path,
) -> None:
    replicated = hb.replicate_model_fn(model_fn, num_towers=2, batches="fetch")
    job = estimator(replicated, tmp_path)

    def doubled(features: Any) -> Any:
        return {**features, "x": features["x"] * 2}

    with pytest.raises(hb.errors.InvalidArgumentError, match="from one `get_next`"):
        job.train(input_fn(BATCH, doubled))
    job.train(input_fn(BATCH, lambda features: features), steps=1)


def test_unknown_way_to_get_batches_is_refused() -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match="'split' or 'fetch'"):
        hb.replicate_model_fn(model_fn, batches="copy")  # type: ignore[arg-type]


def test_more_towers_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pretends that the machine has two GPUs.
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: [kind + ":0", kind + ":1"]
    )
    assert hb.loops.tower_devices(2) == ("/device:GPU:0", "/device:GPU:1")
    with pytest.raises(hb.errors.InvalidArgumentError, match="at most 2"):
        hb.loops.tower_devices(3)
    cpus = ["/device:CPU:0", "/device:CPU:1", "/device:CPU:2"]
    assert hb.loops.tower_devices(3, cpus) == tuple(cpus)
