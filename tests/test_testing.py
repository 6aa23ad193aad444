"""The recording guests and `spy`, in their native loops on every Keras flavour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import until_stop
from hook_fetching import X, Y, sequential

from hookbridge import errors
from hookbridge.ground import lifecycle
from hookbridge.ground.lifecycle import Delivery
from hookbridge.testing import (
    EventLog,
    RecordingCallback,
    RecordingHook,
    assert_conforms,
    differences,
    spy,
    unspy,
)


def run_session(hooks: list[Any]) -> None:
    """Three steps of a session."""
    with tf.Graph().as_default():
        step = tf.compat.v1.train.get_or_create_global_step()
        train_op = tf.compat.v1.assign_add(step, 1)
        tf.constant(7.0, name="seven")
        until_stop([*hooks, tf.compat.v1.train.StopAtStepHook(3)], train_op)


def fit(keras: Any, callback: Any, epochs: int = 1) -> Any:
    """Four steps in each epoch."""
    options: dict[str, Any] = {"batch_size": 8, "epochs": epochs, "verbose": 0}
    return sequential(keras).fit(X, Y, callbacks=[callback], **options)


def test_one_recording_callback_serves_two_flavours(keras2: Any, keras3: Any) -> None:
    log = EventLog()
    callback = RecordingCallback(log)
    for keras in (keras2, keras3):
        fit(keras, callback)
        assert_conforms(
            *(log, "RecordingCallback"),
            guest="callback",
            host="fit",
            steps=4,
            steps_per_epoch=4,
        )
        log.clear()


def test_recording_callback_of_epochs_only(keras: Any) -> None:
    log = EventLog()
    callback = RecordingCallback(log, "a", only={"on_epoch_end"})
    if hasattr(callback, "_implements_train_batch_hooks"):
        assert not callback._implements_train_batch_hooks()
    fit(keras, callback)
    assert log.of("a") == [Delivery("on_epoch_end", 0)]
    kept = lifecycle.overridden(callback, "callback")
    assert set(kept) == {"set_model", "set_params", "on_epoch_end"}


def test_recording_hook_fetches_feeds_and_stops() -> None:
    log = EventLog()
    hook = RecordingHook(log, "a", fetches={"x": "seven:0"}, stop_after_runs=2)
    run_session([hook])
    assert_conforms(log, "a", guest="hook", host="session", steps=2)
    assert hook.results() == [{"x": 7.0}] * 2

    def seven() -> Any:
        return tf.compat.v1.get_default_graph().get_tensor_by_name("seven:0")

    hook = RecordingHook(log, "b", fetches=seven, feed_dict={"seven:0": 3.0})
    run_session([hook])
    assert hook.results() == [3.0] * 3


def test_options_of_a_recording_hook_reach_each_run() -> None:
    limits = []

    class Watch(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            limits.append(run_values.options.timeout_in_ms)

    options = tf.compat.v1.RunOptions(timeout_in_ms=60_000)
    run_session([RecordingHook(EventLog(), options=options), Watch()])
    assert limits == [60_000] * 3


def test_functions_of_a_recording_hook_are_called_once_for_each_event() -> None:
    log, calls = EventLog(), list[str]()

    def fetched() -> Any:
        calls.append("fetches")
        return tf.compat.v1.get_default_graph().get_tensor_by_name("seven:0")

    def fed() -> Any:
        calls.append("feed")
        return {"seven:0": float(len(calls))}

    hook = RecordingHook(log, "a", fetches=fetched, feed_dict=fed)
    for _ in range(2):
        run_session([hook])
    assert calls == ["fetches", *["feed"] * 3] * 2
    assert hook.results() == [2.0, 3.0, 4.0, 6.0, 7.0, 8.0]


def test_spied_hook_still_works(tmp_path: Any) -> None:
    log = EventLog()
    hook = tf.compat.v1.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    events = lifecycle.overridden(hook, "hook")
    assert spy(hook, log, "saver") is hook
    run_session([hook])
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-3")
    assert_conforms(log, "saver", guest="hook", host="session", steps=3, only=events)
    assert set(log.counts("saver")) == {*events}


def test_spied_callbacks_still_work(keras: Any) -> None:
    log, seen = EventLog(), list[int]()
    stopping = keras.callbacks.EarlyStopping("loss", min_delta=1e9, patience=0)
    spy(stopping, log)
    stopped_at = len(fit(keras, stopping, epochs=5).epoch)
    assert stopped_at < 5
    counts = log.counts("EarlyStopping")
    facts: dict[str, Any] = {"steps": 4 * stopped_at, "steps_per_epoch": 4}
    facts |= {"guest": "callback", "host": "fit", "only": counts}
    assert_conforms(log, "EarlyStopping", **facts)
    assert counts["on_epoch_end"] == stopped_at
    # Methods that are set on the instance are seen too.
    of_instance = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(epoch)
    )
    fit(keras, spy(of_instance, log, "lambda"), epochs=2)
    assert seen == [0, 1]
    assert log.counts("lambda")["on_epoch_end"] == 2


def test_spy_adds_no_batch_method(keras: Any) -> None:
    class EpochOnly(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            pass

    kept = lifecycle.overridden(EpochOnly(), "callback")
    assert set(kept) == {"set_model", "set_params", "on_epoch_end"}
    callback = spy(EpochOnly(), EventLog())
    for event in lifecycle.CALLBACK_EVENTS:
        if "batch" in event.name:
            assert getattr(getattr(callback, event.name), "_is_default", False)
    if hasattr(callback, "_implements_train_batch_hooks"):
        assert not callback._implements_train_batch_hooks()


def test_spying_again_moves_and_unspy_restores(keras: Any) -> None:
    callback = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: None)
    before = dict(vars(callback))
    first, second = EventLog(), EventLog()
    spy(callback, first)
    spy(callback, second, "again")
    callback.on_epoch_end(3, {"loss": np.float32(0.5)})
    assert len(first) == 0
    assert second.of("again") == [Delivery("on_epoch_end", 3)]
    assert second.logs("again", "on_epoch_end") == [{"loss": 0.5}]
    assert dict(vars(unspy(callback))) == before


def test_what_is_no_guest_and_no_event_is_refused() -> None:
    with pytest.raises(errors.NotAGuestError, match="Received the class"):
        spy(RecordingHook, EventLog())
    with pytest.raises(errors.InvalidArgumentError, match="'on_trian_end'; expected"):
        RecordingCallback(EventLog(), only=["on_trian_end"])


def test_log_as_json() -> None:
    ticks = iter([10.0, 10.5, 11.0])
    log = EventLog(clock=lambda: next(ticks))
    log.add("a", "begin", results=object())
    log.add("a", "on_epoch_end", 2, logs={"loss": np.float32(0.25), "big": X})
    keys = ("guest", "event", "number", "secs", "logs")
    begin, epoch = ("a", "begin", None, 0.5), ("a", "on_epoch_end", 2, 1.0)
    rows = ((*begin, dict[str, float]()), (*epoch, {"loss": 0.25}))
    assert log.to_json() == [dict(zip(keys, row, strict=True)) for row in rows]


def test_differences_say_where_and_how_many() -> None:
    want = lifecycle.expected_events("hook", "session", steps=2)
    assert differences(want, want) == []
    assert differences(want[:-1], want) == [
        "event 7: received nothing more, expected `end`",
        "end: received 0 times, expected 1",
    ]
    epochs = [Delivery("on_epoch_end", 0), Delivery("on_epoch_end", 1)]
    assert differences(epochs[::-1], epochs) == [
        "event 1: received `on_epoch_end(1)`, expected `on_epoch_end(0)`"
    ]
    log = EventLog()
    log.add("a", "begin")
    with pytest.raises(AssertionError, match=r"`a` \(hook in fit\) did not see"):
        assert_conforms(log, "a", guest="hook", host="fit", steps=1)
