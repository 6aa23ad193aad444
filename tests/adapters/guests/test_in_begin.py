"""`hb.in_begin`: a hook that is made on the graph of the run."""

from __future__ import annotations

from typing import Any

import hook_hosts as hosts
import pytest
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1


def final_step() -> Any:
    """A hook whose constructor takes a tensor, which must be in the run's graph."""
    return v1.train.FinalOpsHook(v1.train.get_global_step() * 2)


def test_in_fit(subtests: pytest.Subtests, keras: Any) -> None:
    model, hook = hosts.keras_model(keras), hb.in_begin(final_step)
    for runs in (1, 2):
        with subtests.test(str(runs)):
            hosts.in_fit(keras, [hook], model=model, epochs=1)
            assert hook.final_ops_values == 2 * runs * hosts.BATCHES


def test_in_a_session_loop() -> None:
    hook = hb.in_begin(final_step)
    (same,) = hb.as_hooks(hb.as_hooks(hook))
    assert same is hook
    hosts.in_session([hook, v1.train.StopAtStepHook(last_step=3)])
    assert hook.final_ops_values == 6


def test_what_fit_refuses_is_refused(keras: Any) -> None:
    def sync() -> Any:
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        return v1.train.SyncReplicasOptimizer(optimizer, 1).make_session_run_hook(True)

    with pytest.raises(hb.errors.RefusedError, match="_SyncReplicasOptimizerHook"):
        hosts.in_fit(keras, [hb.in_begin(sync)])


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
