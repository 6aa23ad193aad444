"""What hooks fetch and feed in `fit` of a model in a v1 graph."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from graph_recorder import Recorder, X, Y, make_model

import hookbridge as hb
from hookbridge import structures
from hookbridge.adapters.graph_fit import step as graph_step

pytestmark = pytest.mark.v1_mode("disable_v2_behavior")
v1 = tf.compat.v1


def test_learning_rate_and_gradients_are_fetched_and_fed(keras2: Any) -> None:
    class Feeds(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            return v1.train.SessionRunArgs(self.fetches, {"learning_rate:0": 0.0})

    model = make_model(keras2)
    before = model.get_weights()
    hook = Feeds(["learning_rate:0", "gradients/out/kernel:0"])
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert [r[0] for r in hook.results] == [0.0] * 10
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    hook = Recorder(["learning_rate:0", "gradients/out/kernel:0"])
    before = model.get_weights()
    model.fit(X, Y, batch_size=320, verbose=0, callbacks=hb.as_callbacks(hook))
    rate, gradient = hook.results[0]
    np.testing.assert_allclose(
        model.get_weights()[2], before[2] - rate * gradient, rtol=1e-5
    )


def test_unknown_names_and_feeds_of_a_schedule_are_refused(keras2: Any) -> None:
    class Feeds(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            return v1.train.SessionRunArgs(None, {"learning_rate:0": 0.0})

    schedule = keras2.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model = make_model(keras2, optimizer=keras2.optimizers.legacy.SGD(schedule))
    before = model.get_weights()
    refused = hb.errors.LiveSessionError
    unknown = v1.train.LoggingTensorHook(["hiden/Relu:0"], 1)
    for hook, error, message in (
        (unknown, hb.errors.UnknownTensorError, "`hidden/Relu:0`"),
        (Feeds(), refused, r"feeds `learning_rate:0`, which is a `ExponentialDecay`"),
    ):
        with pytest.raises(error, match=message):
            model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
        for now, then in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(now, then)
    model.fit(X, Y, verbose=0)


def test_a_feed_reaches_the_step(keras2: Any) -> None:
    class Zeros(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            zeros = np.zeros([32, 4], "f")
            return v1.train.SessionRunArgs(["hidden/Relu:0"], {"hidden/Relu:0": zeros})

    model = make_model(keras2)
    hook = Zeros()
    result = model.predict(X, callbacks=hb.as_callbacks(hook))
    np.testing.assert_array_equal(result, np.zeros([320, 1]))
    np.testing.assert_array_equal(hook.results[0], np.zeros([1, 32, 4]))
    with pytest.raises(RuntimeError, match="Same tensor is fed by two hooks"):
        model.predict(X, callbacks=hb.as_callbacks([Zeros(), Zeros()]))


def test_new_fetches_in_every_step_do_not_pile_up(
    keras2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: weakref.WeakSet[Any] = weakref.WeakSet()

    class Noted(graph_step._Plan):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            plans.add(self)

    class New(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            return v1.train.SessionRunArgs({f"step {len(self.calls)}": "loss:0"})

        def end(self, session: Any) -> None:
            gc.collect()
            self.kept = len(plans)

    monkeypatch.setattr(graph_step, "_Plan", Noted)
    monkeypatch.setattr(structures, "MOST", 2)
    hook = New()
    make_model(keras2).fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert len(hook.results) == 10
    assert 0 < hook.kept <= 2 * structures.MOST


def test_the_loop_fetches_and_feeds_as_a_session_loop(keras2: Any) -> None:
    class Refetches(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            return v1.train.SessionRunArgs(self.original_args.fetches)

    model, hook = make_model(keras2, metrics=["mae"]), Refetches()
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert set(hook.results[0]) == set(model.metrics_names)
    fed = hook.original_args.feed_dict
    assert any(np.shape(value) == (32, 4) for value in fed.values())
    hook = Refetches()
    result = model.predict(X, callbacks=hb.as_callbacks(hook))
    np.testing.assert_array_equal(
        np.concatenate([r["out"] for r in hook.results]), result
    )
