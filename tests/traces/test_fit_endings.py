"""How a `fit` with hooks ends: who is called, what is closed, which files are whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from trace_events import Event
from trace_hooks import Recorder

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

v1 = tf.compat.v1

BATCHES = 3


def model_of(keras: Any) -> Any:
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1, name="out")])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def batches(*, known: bool) -> Any:
    x, y = np.ones([2 * BATCHES, 2], "float32"), np.ones([2 * BATCHES, 1], "float32")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
    return data if known else data.filter(lambda *_: True)


def native(keras: Any, log: list[str]) -> Any:
    """A callback of that Keras that notes the ends of epochs and of the training."""

    return callback_of(
        keras,
        on_epoch_end=lambda self, epoch, logs: log.append(f"epoch {epoch}"),
        on_train_end=lambda self, logs: log.append("train"),
    )


def count(log: list[Event], event: str) -> int:
    return sum(entry["e"] == event for entry in log)


def out_of_range() -> Exception:
    return tf.errors.OutOfRangeError(None, None, "hook")  # type: ignore[no-any-return]


def stop_iteration() -> Exception:
    return StopIteration("hook")


@pytest.mark.parametrize(
    ("make", "event", "call", "known"),
    [  # every pair of values
        (out_of_range, "before_run", 1, True),
        (out_of_range, "before_run", 2, False),
        (out_of_range, "after_run", 4, True),
        (stop_iteration, "after_run", 1, False),
        (stop_iteration, "after_run", 2, True),
        (stop_iteration, "before_run", 4, False),
    ],
)
def test_end_of_data_from_a_hook_stops_the_whole_fit(
    keras: Any, make: Callable[[], Exception], event: str, call: int, known: bool
) -> None:
    log: list[Event] = []
    heard: list[str] = []
    hook = Recorder(log, "A", raises={(event, call): make})
    model_of(keras).fit(
        batches(known=known),
        epochs=5,
        verbose=0,
        callbacks=[HookToCallback(hook), native(keras, heard)],
    )
    # Without a known size, one more call meets the end of the data.
    calls = BATCHES + (event == "before_run" and not known)
    last_epoch = (call - 1) // calls
    assert heard == [*(f"epoch {e}" for e in range(last_epoch + 1)), "train"]
    assert count(log, event) == call
    assert count(log, "end") == 1


def test_end_of_data_ends_only_the_epoch(keras: Any) -> None:
    log: list[Event] = []
    heard: list[str] = []
    model_of(keras).fit(
        batches(known=False),
        epochs=2,
        verbose=0,
        callbacks=[HookToCallback(Recorder(log, "A")), native(keras, heard)],
    )
    assert heard == ["epoch 0", "epoch 1", "train"]
    assert count(log, "after_run") == 2 * BATCHES
    assert log[-1] == {"e": "end", "h": "A", "gs": 2 * BATCHES}


def test_subclass_of_the_end_of_data_escapes(keras: Any) -> None:
    class Mine(tf.errors.OutOfRangeError):  # type: ignore[misc]
        pass

    log: list[Event] = []
    raises = {("after_run", 2): lambda: Mine(None, None, "mine")}
    hook = Recorder(log, "A", raises=raises)
    model = model_of(keras)
    with pytest.raises(errors.LiveSessionError, match="mine") as caught:
        model.fit(batches(known=True), verbose=0, callbacks=[HookToCallback(hook)])
    assert type(caught.value.hook_error) is Mine
    assert count(log, "end") == 0


@pytest.mark.parametrize("event", ["begin", "after_create_session"])
def test_end_of_data_before_the_first_step_is_the_cause(keras: Any, event: str) -> None:
    hook = Recorder([], "A", raises={(event, 1): out_of_range})
    model = model_of(keras)
    with pytest.raises(errors.LiveSessionError, match="end of the data") as caught:
        model.fit(batches(known=True), verbose=0, callbacks=[HookToCallback(hook)])
    assert type(caught.value.hook_error) is tf.errors.OutOfRangeError


@pytest.mark.parametrize(
    "event", ["begin", "after_create_session", "before_run", "after_run", "end"]
)
def test_after_a_failure_all_is_closed_and_usable(keras: Any, event: str) -> None:
    log: list[Event] = []
    error = ValueError("hook")
    hook = Recorder(log, "A", raises={(event, 1): lambda: error})
    callback = HookToCallback(hook)
    model = model_of(keras)
    methods = set(vars(model))
    threads = set(threading.enumerate())
    with pytest.raises(ValueError, match="hook") as caught:
        model.fit(batches(known=True), verbose=0, callbacks=[callback])
    assert caught.value is error
    assert set(threading.enumerate()) <= threads
    assert not {m for m in set(vars(model)) - methods if m.startswith("make_")}
    if event != "begin":
        with pytest.raises(RuntimeError, match="closed Session"):
            hook.sessions[0].run(hook.read)
    # The same hook in a second fit, which continues from the steps made so far.
    steps_before = int(event in ("after_run", "end")) * (1 if event != "end" else 3)
    del log[:]
    model.fit(batches(known=True), verbose=0, callbacks=[callback])
    steps = [e["gs"] for e in log if e["e"] == "after_run"]
    assert steps == [steps_before + 1, steps_before + 2, steps_before + 3]
    assert count(log, "end") == 1
    model.fit(batches(known=True), verbose=0)


def test_checkpoints_written_before_a_failure_are_whole(
    keras: Any, tmp_path: Path
) -> None:
    saver = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    failing = Recorder([], "X", raises={("before_run", 3): lambda: ValueError("hook")})
    model = model_of(keras)
    with pytest.raises(ValueError, match="hook"):
        model.fit(
            batches(known=True),
            verbose=0,
            callbacks=[HookToCallback(saver), HookToCallback(failing)],
        )
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("global_step") == 2
    kernel = reader.get_tensor("out/kernel")
    np.testing.assert_array_equal(kernel, model.get_weights()[0])


def test_recovery_closes_the_lost_session(keras: Any) -> None:
    log: list[Event] = []
    lost = {("after_run", 2): lambda: tf.errors.AbortedError(None, None, "lost")}
    hook = Recorder(log, "A", raises=lost)
    model_of(keras).fit(
        batches(known=True), verbose=0, callbacks=[HookToCallback(hook)]
    )
    assert len(hook.sessions) == 2
    assert count(log, "begin") == count(log, "end") == 1
    for session in hook.sessions:
        with pytest.raises(RuntimeError, match="closed Session"):
            session.run(hook.read)


def test_queue_runners_of_a_hook_end_with_the_fit(keras: Any) -> None:
    """The coordinator stops the threads, which call `session.run` all the time."""
    values: list[int] = []

    class Hook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            queue = tf.queue.FIFOQueue(2, tf.int64, shapes=[[]])
            number = v1.get_variable(
                "number", shape=[], dtype=tf.int64, initializer=v1.zeros_initializer()
            )
            put = queue.enqueue(v1.assign_add(number, 1))
            v1.train.add_queue_runner(v1.train.QueueRunner(queue, [put]))
            self.next = queue.dequeue()

        def after_create_session(self, session: Any, coord: Any) -> None:
            v1.train.start_queue_runners(session, coord)

        def before_run(self, run_context: Any) -> Any:
            return v1.train.SessionRunArgs(self.next)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            values.append(int(run_values.results))

    threads = set(threading.enumerate())
    model_of(keras).fit(
        batches(known=True), verbose=0, callbacks=[HookToCallback(Hook())]
    )
    assert values == [1, 2, 3]
    assert set(threading.enumerate()) <= threads
