"""What hooks fetch and feed in `fit` of a model in a v1 graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from graph_recorder import Recorder, X, Y, make_model

import hookbridge as hb

pytestmark = pytest.mark.v1_mode("disable_v2_behavior")
v1 = tf.compat.v1


class Feeds(Recorder):
    """Fetches as the recorder, and feeds."""

    def __init__(self, feeds: dict[str, Any], fetches: Any = None) -> None:
        super().__init__(fetches)
        self.feeds = feeds

    def before_run(self, run_context: Any) -> Any:
        super().before_run(run_context)
        return v1.train.SessionRunArgs(self.fetches, self.feeds)


NO_RATE = {"learning_rate:0": 0.0}


def check_weights(model: Any, weights: list[Any]) -> None:
    for now, then in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(now, then)


def test_learning_rate_and_gradients_are_fetched_and_fed(keras2: Any) -> None:
    model, names = make_model(keras2), ["learning_rate:0", "gradients/out/kernel:0"]
    before, hook = model.get_weights(), Feeds(NO_RATE, names)
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert [r[0] for r in hook.results] == [0.0] * 10
    check_weights(model, before)
    recorder = Recorder(names)
    model.fit(X, Y, batch_size=320, verbose=0, callbacks=hb.as_callbacks(recorder))
    rate, gradient = recorder.results[0]
    np.testing.assert_allclose(
        model.get_weights()[2], before[2] - rate * gradient, rtol=1e-5
    )


def test_unknown_names_and_feeds_of_a_schedule_are_refused(
    subtests: pytest.Subtests, keras2: Any
) -> None:
    schedule = keras2.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model = make_model(keras2, optimizer=keras2.optimizers.legacy.SGD(schedule))
    before = model.get_weights()
    unknown = v1.train.LoggingTensorHook(["hiden/Relu:0"], 1)
    for hook, error, message in (
        (unknown, hb.errors.UnknownTensorError, "`hidden/Relu:0`"),
        (
            Feeds(NO_RATE),
            hb.errors.LiveSessionError,
            r"feeds `learning_rate:0`, which is a `ExponentialDecay`",
        ),
    ):
        with subtests.test(str(hook)):
            with pytest.raises(error, match=message):
                model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
            check_weights(model, before)
    model.fit(X, Y, verbose=0)


def test_a_scheduled_or_decayed_rate_is_that_before_the_update(keras2: Any) -> None:
    schedule = keras2.optimizers.schedules.InverseTimeDecay(0.5, 1, 0.25)
    sgd = keras2.optimizers.legacy.SGD
    for optimizer in (sgd(schedule), sgd(0.5, decay=0.25)):
        model = make_model(keras2, optimizer=optimizer)
        recorder = Recorder(["learning_rate:0"])
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(recorder))
        rates = [float(values[0]) for values in recorder.results]
        np.testing.assert_allclose(rates, 0.5 / (1 + 0.25 * np.arange(10)), 1e-5)
    with pytest.raises(hb.errors.LiveSessionError, match="a rate with `decay=`"):
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(Feeds(NO_RATE)))


def test_a_feed_reaches_the_step(keras2: Any) -> None:
    model = make_model(keras2)
    zeros = {"hidden/Relu:0": np.zeros([32, 4], "f")}
    one, other = (Feeds(zeros, ["hidden/Relu:0"]) for _ in range(2))
    result = model.predict(X, callbacks=hb.as_callbacks(one))
    np.testing.assert_array_equal(result, np.zeros([320, 1]))
    np.testing.assert_array_equal(one.results[0], np.zeros([1, 32, 4]))
    with pytest.raises(RuntimeError, match="Same tensor is fed by two hooks"):
        model.predict(X, callbacks=hb.as_callbacks([one, other]))


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
