"""`hb.in_begin`: a hook that is made on the graph of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_loops
import pytest
import tensorflow as tf
from estimator_models import estimators

import hookbridge as hb

v1 = tf.compat.v1


def final_step() -> Any:
    """A hook whose constructor takes a tensor, which must be in the run's graph."""
    return v1.train.FinalOpsHook(v1.train.get_global_step() * 2)


def test_in_fit(subtests: pytest.Subtests, keras: Any) -> None:
    model, hook = hook_loops.keras_model(keras), hb.in_begin(final_step)
    for runs in (1, 2):
        with subtests.test(str(runs)):
            hook_loops.in_fit(keras, [hook], model=model, epochs=1)
            assert hook.final_ops_values == 2 * runs * hook_loops.BATCHES


def test_in_a_session_loop() -> None:
    hook = hb.in_begin(final_step)
    (same,) = hb.as_hooks(hb.as_hooks(hook))
    assert same is hook
    hook_loops.in_session([hook, v1.train.StopAtStepHook(last_step=3)])
    assert hook.final_ops_values == 6


def test_in_a_loop_of_ones_own_and_in_an_estimator(keras: Any, tmp_path: Path) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(final_step())
        return made[-1]

    hook, model = hb.in_begin(make), hook_loops.keras_model(keras)

    def data() -> Any:
        rows = tf.data.Dataset.from_tensor_slices((hook_loops.X, hook_loops.Y))
        return rows.batch(hook_loops.BATCH)

    for runs in (1, 2):
        with hb.loops.OwnLoop(hook, model=model) as loop:
            for batch in data():
                loop.step(model.train_on_batch, *batch)
        assert hook.final_ops_values == 2 * runs * hook_loops.BATCHES

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [4, 1], initializer=v1.ones_initializer())
        loss, step = tf.reduce_mean(features @ weight), v1.train.get_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = estimators.Estimator(model_fn, str(tmp_path))
    for runs in (1, 2):
        estimator.train(data, hooks=hb.as_hooks(hook), steps=3)
        assert hook.final_ops_values == 2 * 3 * runs
    # Each run has made a hook of its own.
    assert len(set(map(id, made))) == len(made) == 4


def test_what_fit_refuses_is_refused(keras: Any) -> None:
    def sync() -> Any:
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        return v1.train.SyncReplicasOptimizer(optimizer, 1).make_session_run_hook(True)

    with pytest.raises(hb.errors.RefusedError, match="_SyncReplicasOptimizerHook"):
        hook_loops.in_fit(keras, [hb.in_begin(sync)])


def test_roles_and_explain_know_it() -> None:
    hook = hb.in_begin(final_step)
    assert hb.set_role(hook, "chief") is hook
    (row,) = hb.explain(hook, host="fit").guests
    assert (row.kind, row.verdict, row.role) == ("hook", "wrapped", "chief")
    assert hb.as_callbacks(hb.as_callbacks(hook))[0].hook is hook


def test_what_is_no_function_or_makes_no_hook_is_refused(keras2: Any) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match="function without"):
        hb.in_begin(v1.train.StopAtStepHook(1))
    hook = hb.in_begin(lambda: None)
    with pytest.raises(AttributeError, match="when a run begins"):
        hook.final_ops_values  # noqa: B018
    with pytest.raises(hb.errors.NotAGuestError, match="has made None"):
        hook.begin()
