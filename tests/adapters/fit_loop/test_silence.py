"""A hook that was given to a loop and never called ends it with an error."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from fork_server import ForkServer
from hook_fetching import Fetch

import hookbridge as hb
from hookbridge.ground.processes import exit_codes
from hookbridge.testing import EventLog, RecordingHook

ONE_KERAS = True


def model_of(keras: Any) -> Any:
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")


def step(model: Any) -> None:
    """A step that bypasses Keras's train function."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(X) - Y) ** 2)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    model.optimizer.apply_gradients(zip(gradients, weights, strict=True))


def custom_loop(keras: Any, *, ends: bool) -> Any:
    model = model_of(keras)
    callbacks = keras.callbacks.CallbackList(
        hb.as_callbacks(RecordingHook(EventLog())), model=model
    )
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    step(model)
    if ends:
        callbacks.on_epoch_end(0, None)
        callbacks.on_train_end()
    return callbacks


def test_a_loop_of_the_users_own_is_told(
    subtests: pytest.Subtests, keras: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """At its end, by the first logs that it gives, or when the adapter is forgotten."""
    with pytest.raises(
        hb.errors.NeverCalledError,
        match=r"`RecordingHook` was given to a loop of the model .*never called",
    ):
        custom_loop(keras, ends=True)
    for mode in ("epoch", "test", "predict"):
        with subtests.test(str(mode)):
            (callback,) = hb.as_callbacks(RecordingHook(EventLog()))
            callback.set_model(model_of(keras))
            if mode == "epoch":
                callback.on_train_begin()
                callback.on_epoch_end(0, {})  # no step
            end = getattr(callback, f"on_{mode}_end")
            with pytest.raises(hb.errors.NeverCalledError):
                end(*([1] if mode == "epoch" else []), {"loss": 1.0})
    custom_loop(keras, ends=False)
    gc.collect()
    assert "NeverCalledError: `RecordingHook` was given" in caplog.text
    assert exit_codes.of_done() == exit_codes.FAILED
    assert exit_codes.of_done() == exit_codes.DONE  # it was told


def test_a_loop_over_train_on_batch_calls_hooks(keras: Any) -> None:
    """In each step of a list of callbacks that the user's own loop calls."""
    model, hook = model_of(keras), Fetch("loss:0")
    callbacks = keras.callbacks.CallbackList(hb.as_callbacks(hook), model=model)
    losses = []
    callbacks.on_train_begin()
    for epoch in range(3):
        callbacks.on_epoch_begin(epoch)
        callbacks.on_train_batch_begin(0)
        losses.append(model.train_on_batch(X, Y))
        callbacks.on_train_batch_end(0)
        model.evaluate(X, Y, verbose=0)
        callbacks.on_epoch_end(epoch, {"loss": losses[-1]})
    callbacks.on_train_end()
    np.testing.assert_allclose(np.ravel(hook.seen), losses, rtol=1e-6)
    assert hook.steps == [0, 1, 2] and hook.ended


def test_a_loop_without_a_step_is_no_error(
    keras: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Any, logs: Any = None) -> None:
        raise KeyError("of the user's")

    log = EventLog()
    callbacks = hb.as_callbacks(RecordingHook(log))
    model = model_of(keras)
    model.fit(X, Y, initial_epoch=1, verbose=0, callbacks=callbacks)
    fails = [
        *hb.as_callbacks(RecordingHook(log)),
        callback_of(keras, on_train_begin=fail),
    ]
    with pytest.raises(KeyError):
        model.fit(X, Y, verbose=0, callbacks=fails)
    model.fit(X, Y, verbose=0)
    assert not log.of("RecordingHook")
    model.fit(X, Y, epochs=1, verbose=0, callbacks=callbacks)
    assert log.counts("RecordingHook")["end"] == 1
    fails.clear()
    gc.collect()
    assert "NeverCalledError" not in caplog.text


PROGRAM = """
import atexit, sys, threading
atexit.register(print, "the user's first")
sys.path[:0] = ["tests/adapters/fit_loop", "tests/adapters/helpers", "tests/helpers"]
import tensorflow as tf
from test_silence import custom_loop
kept = custom_loop(tf.keras, ends=False)
atexit.register(print, "the user's last")
end = threading.main_thread().join
threading.Thread(target=lambda: (end(), print("thread"))).start()
atexit.register(lambda: sys.stderr.flush())
print("all done")
sys.exit()
"""


@pytest.mark.parametrize("command", ["python", "hookbridge run"])
def test_the_end_of_the_process_tells_it(
    command: str, tmp_path: Path, fork_server: ForkServer, bare_launcher: ForkServer
) -> None:
    """The library logs it once; the exit code is that of hookbridge's own command."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    if command == "python":
        done, code = fork_server.run(str(file)), 0
    else:
        done, code = bare_launcher.run("-m", "hookbridge", "run", str(file)), 1
    lines = ["all done", "thread", "the user's last", "the user's first"]
    assert done.stdout.splitlines() == lines, done.stderr[-2000:]
    assert done.returncode == code, done.stderr[-2000:]
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert done.stderr.count("NeverCalledError: `RecordingHook` was given") == 1
