"""Every optimizer that a Keras exports, wrapped or not: rates, feeds and restarts.

Each is compared with an undisturbed native training on the same data.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import optimizer_runs as runs
import pytest
import tensorflow as tf
from fork_server import ForkServer
from hook_fetching import rate_hook

from hookbridge import errors

# Hidden variables, slots that appear late and a counter of updates; equal names; a
# wrapper that tells no variables.
SAMPLE = [("keras", "accumulated:Nadam"), ("tf_keras", "plain:v1.AdamOptimizer")]


def check(keras: Any, case: str, folder: str) -> list[float]:
    """Reads, feeds, saves and restores in one process; returns the native weights."""
    expected = native(runs.model_of(keras, case))
    way = case.partition(":")[0]
    if ":v1." in case:
        with pytest.raises(errors.UnknownTensorError):
            runs.fit(runs.model_of(keras, case), rate_hook())  # no variable has it
    elif "MultiOptimizer" not in case:
        hook = rate_hook()
        model = runs.model_of(keras, case)
        assert_same(runs.fit(model, hook), expected, case)
        is_scheduled = way in ("scheduled", "accumulated")
        decay = 0.5 ** (np.arange(runs.STEPS) / 2) if is_scheduled else 1.0
        np.testing.assert_allclose(hook.seen, runs.RATE * decay, 1e-5, err_msg=case)
        fed = runs.fit(
            runs.model_of(keras, case), rate_hook(feed=runs.OTHER_RATE), steps=2
        )
        other = runs.model_of(keras, case, runs.OTHER_RATE)
        assert_same(fed, native(other, 2), case)
    runs.save_first_part(keras, case, folder)
    assert_same(runs.go_on(keras, case, folder), expected, case)
    return expected


def native(model: Any, steps: int = runs.STEPS) -> list[float]:
    """Trains without hooks, in one epoch."""
    data = tf.data.Dataset.from_tensors((runs.X, runs.Y)).repeat()
    model.fit(data, steps_per_epoch=steps, verbose=0)
    return runs.weights(model)


def assert_same(seen: list[float], expected: list[float], case: str) -> None:
    np.testing.assert_allclose(seen, expected, 1e-5, 1e-6, err_msg=case)


def check_all(
    keras: Any, cases: list[str], folder: Path, fork_server: ForkServer, subtests: Any
) -> None:
    expected: dict[str, list[float]] = {}
    for case in cases:
        with subtests.test(case):
            expected[case] = check(keras, case, str(folder))
    helper = runs.__file__
    done = fork_server.run(str(helper), keras.__name__, str(folder), *expected)
    assert done.returncode == 0, done.stderr
    for case, weights in json.loads(done.stdout.splitlines()[-1]).items():
        with subtests.test(f"{case} in a new process"):
            assert_same(weights, expected[case], case)


@pytest.mark.slow
@pytest.mark.one_tensorflow
@pytest.mark.parametrize(("flavour", "case"), SAMPLE)
def test_a_sample(flavour: str, case: str, tmp_path: Path) -> None:
    check(importlib.import_module(flavour), case, str(tmp_path))


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", runs.WAYS)
def test_all(
    keras: Any, way: str, tmp_path: Path, fork_server: ForkServer, subtests: Any
) -> None:
    cases = [c for c in runs.all_cases(keras) if c.startswith(f"{way}:")]
    check_all(keras, cases, tmp_path, fork_server, subtests)
