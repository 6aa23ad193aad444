"""A hook that feeds the learning rate beside a callback that sets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import fit, session_loop

import hookbridge as hb

v1 = tf.compat.v1
RATES: dict[str, Callable[[], Any]] = {
    "placeholder": lambda: v1.placeholder_with_default(
        np.float32(0.1), [], name="learning_rate"
    ),
    "constant": lambda: tf.constant(0.1, name="learning_rate"),
    "copy": lambda: tf.identity(tf.constant(0.1), name="learning_rate"),
    "cast": lambda: tf.cast(
        tf.constant(0.1, tf.float64), tf.float32, name="learning_rate"
    ),
}


class Feeds(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Feeds the learning rate in each step and notes what the step had."""

    def __init__(self, *, by_name: bool = True) -> None:
        self._by_name = by_name
        self.seen: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        key: Any = "learning_rate:0"
        if not self._by_name:
            key = run_context.session.graph.get_tensor_by_name(key)
        return v1.train.SessionRunArgs(key, feed_dict={key: 0.001})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(round(float(np.asarray(run_values.results)), 6))


def scheduler(keras: Any) -> Any:
    return keras.callbacks.LearningRateScheduler(lambda epoch: 0.05)


@pytest.mark.parametrize(
    ("kind", "first", "by_name"),
    [
        *((kind, "hook", True) for kind in RATES),
        *((kind, "callback", False) for kind in RATES),
    ],
)
def test_a_conflict_is_found_as_between_two_hooks(
    kind: str, first: str, by_name: bool, keras: Any
) -> None:
    def guests() -> list[Any]:
        pair = [Feeds(by_name=by_name), scheduler(keras)]
        return pair if first == "hook" else pair[::-1]

    with pytest.raises(RuntimeError, match="Same tensor is fed by two hooks") as ours:
        session_loop(guests(), rate=RATES[kind], epochs=1, validate=False)
    with pytest.raises(RuntimeError) as native:
        session_loop([Feeds(), Feeds()], rate=RATES[kind], epochs=1, validate=False)
    assert str(native.value).partition("Conflict")[0] in str(ours.value)


def test_a_hook_alone_feeds_it(keras: Any) -> None:
    hook = Feeds()
    session_loop([hook], rate=RATES["copy"], epochs=1, validate=False)
    assert set(hook.seen) == {0.001}


def test_a_variable_takes_both_in_either_loop(keras: Any) -> None:
    """What is assigned and what is fed are no conflict: the step uses what is fed."""

    def variable() -> Any:
        rate = v1.get_variable("rate", initializer=0.1, trainable=False)
        return tf.identity(rate, name="learning_rate")

    of_fit, of_session = Feeds(), Feeds()
    native = fit(keras, hb.as_callbacks([of_fit, scheduler(keras)]), validate=False)
    ours = session_loop([of_session, scheduler(keras)], rate=variable, validate=False)
    assert set(of_session.seen) == set(of_fit.seen) == {0.001}
    for expected, found in zip(native.weights, ours.weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
