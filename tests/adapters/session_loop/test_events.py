"""A callback sees the same events, in the same order, in both loops."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, fit, session_loop
from callback_recorder import EVENTS, recorder

import hookbridge as hb

ONE_KERAS = True


def both(
    keras: Any, make: Any, error: type[BaseException] | None = None, **options: Any
) -> tuple[list[Any], list[Any]]:
    """The events of the native run and of the bridged one."""
    native: list[Any] = []
    bridged: list[Any] = []
    outcome = nullcontext() if error is None else pytest.raises(error, match="from on_")
    with outcome:
        fit(keras, make(native), epochs=2, **options)
    outcome = nullcontext() if error is None else pytest.raises(error, match="from on_")
    with outcome:
        session_loop(make(bridged), epochs=2, **options)
    return native, bridged


@pytest.mark.parametrize("validate", [False, True])
def test_normal(keras: Any, validate: bool) -> None:
    native, bridged = both(
        keras,
        lambda log: [recorder(keras, log, "A"), recorder(keras, log, "B")],
        validate=validate,
    )
    assert bridged == native
    assert len(native) == 2 * (2 + 2 * (2 + 2 * STEPS + (6 if validate else 0)))


@pytest.mark.parametrize("event", [e for e in EVENTS if e != "on_train_end"])
def test_stop_training(keras: Any, event: str) -> None:
    native, bridged = both(
        keras,
        lambda log: [
            recorder(keras, log, "A"),
            recorder(keras, log, "X", stop=event),
            recorder(keras, log, "B"),
        ],
    )
    assert bridged == native
    assert len(native) < 2 * 3 * (1 + 2 + 2 * STEPS + 6)


@pytest.mark.parametrize(
    ("event", "error"),
    zip(EVENTS, itertools.cycle([ValueError, KeyboardInterrupt]), strict=False),
)
def test_exception_leaves_unchanged(
    keras: Any, event: str, error: type[BaseException]
) -> None:
    native, bridged = both(
        keras,
        lambda log: [
            recorder(keras, log, "A"),
            recorder(keras, log, "X", error=(event, error)),
            recorder(keras, log, "B"),
        ],
        error=error,
    )
    assert bridged == native


def test_batch_aliases_are_called(keras: Any) -> None:
    seen: list[Any] = []

    class Old(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_batch_begin(self, batch: int, logs: Any = None) -> None:
            seen.append(("begin", batch))

        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(("end", batch, sorted(logs)))

    session_loop([Old()], epochs=1, validate=False)
    assert seen == [
        x for b in range(STEPS) for x in (("begin", b), ("end", b, ["loss", "mae"]))
    ]


def test_params(keras: Any) -> None:
    callback = keras.callbacks.Callback()
    session_loop([callback], epochs=2, params={"batch_size": 4})
    assert callback.params == {
        "verbose": 0,
        "epochs": 2,
        "steps": STEPS,
        "batch_size": 4,
    }


def test_end_of_an_evaluation_without_data(keras: Any) -> None:
    """An entry without a value is left out, as in Keras 3; Keras 2 raises an error."""
    ends: list[Any] = []
    bar = keras.callbacks.ProgbarLogger()  # calculates with what is in `logs`
    end = keras.callbacks.LambdaCallback()
    end.on_test_end = ends.append
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        loss = tf.identity(0.5, name="loss")
        collections = [v1.GraphKeys.LOCAL_VARIABLES, v1.GraphKeys.EVAL_STEP]
        v1.get_variable("eval_step", initializer=0, collections=collections)
        v1.metrics.mean(loss, name="own_mean")
        guests = [bar, end] if hasattr(keras, "ops") else [end]
        with v1.train.MonitoredSession(hooks=hb.as_hooks(guests)):
            pass
    assert ends == [{"own_mean": 0.0}]
