"""How a `fit` with hooks ends: who is called, what is closed, which files are whole."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from hook_fetching import X, Y, hook_of, sequential
from trace_events import Event
from trace_hooks import Recorder

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

v1 = tf.compat.v1

BATCHES = 3


def fit(
    model: Any, *hooks: Any, known: bool = True, more: Any = (), **options: Any
) -> None:
    rows = 2 * BATCHES
    data = tf.data.Dataset.from_tensor_slices((X[:rows], Y[:rows])).batch(2)
    callbacks = [*map(HookToCallback, hooks), *more]
    data = data if known else data.filter(lambda *_: True)
    model.fit(data, verbose=0, callbacks=callbacks, **options)


def count(log: list[Event], event: str) -> int:
    return sum(entry["e"] == event for entry in log)


def running() -> set[threading.Thread]:
    """The threads, without those of TensorFlow's event files."""
    threads = threading.enumerate()
    return {t for t in threads if "EventLogger" not in type(t).__name__}


OUT_OF_RANGE, STOP = tf.errors.OutOfRangeError(None, None, "hook"), StopIteration()
# The error of a hook, the event and its call, whether the size of the data is known:
# every pair of values.
ENDS: list[tuple[Exception, str, int, bool]] = [
    (OUT_OF_RANGE, "before_run", 1, True),
    (OUT_OF_RANGE, "before_run", 2, False),
    (OUT_OF_RANGE, "after_run", 4, True),
    (STOP, "after_run", 1, False),
    (STOP, "after_run", 2, True),
    (STOP, "before_run", 4, False),
]


def test_end_of_data_from_a_hook_stops_the_whole_fit(
    subtests: pytest.Subtests, keras: Any
) -> None:
    model = sequential(keras)
    for error, event, call, known in ENDS:
        with subtests.test(str(error)):
            log: list[Event] = []
            heard: list[str] = []
            native = callback_of(
                keras,
                on_epoch_end=lambda self, epoch, logs: heard.append(f"epoch {epoch}"),  # noqa: B023
                on_train_end=lambda self, logs: heard.append("train"),  # noqa: B023
            )
            hook = Recorder(log, "A", raises={(event, call): lambda: error})  # noqa: B023
            fit(model, hook, known=known, more=[native], epochs=5)
            # Without a known size, one more call meets the end of the data.
            calls = BATCHES + (event == "before_run" and not known)
            last_epoch = (call - 1) // calls
            assert heard == [*(f"epoch {e}" for e in range(last_epoch + 1)), "train"]
            assert count(log, event) == call
            assert count(log, "end") == 1


def test_keras_2_warns_of_missing_data_only_where_data_are_missing(
    keras2: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = sequential(keras2)
    log: list[Event] = []
    fit(model, Recorder(log, "A", raises={("before_run", 2): lambda: OUT_OF_RANGE}))
    assert count(log, "end") == 1
    for loop, data in (("evaluate", (X, Y)), ("predict", (X,))):
        calls: list[int] = []

        def stop(self: Any, context: Any, values: Any) -> None:
            calls.append(1)  # noqa: B023
            context.request_stop()

        hook = HookToCallback(hook_of(after_run=stop))
        getattr(model, loop)(*data, batch_size=2, verbose=0, callbacks=[hook])
        assert calls == [1] and len(X) > 2
    assert "ran out of data" not in caplog.text
    fit(model, Recorder(log, "B"), steps_per_epoch=2 * BATCHES)
    assert "ran out of data" in caplog.text


def test_what_keras_would_take_for_the_end_of_data_escapes(keras: Any) -> None:
    """A subclass is no end of the data."""
    log: list[Event] = []
    kind: Any = type("Mine", (tf.errors.OutOfRangeError,), {})
    error = kind(None, None, "hook")
    hook = Recorder(log, "A", raises={("after_run", 2): lambda: error})
    with pytest.raises(errors.LiveSessionError, match="end of the data") as caught:
        fit(sequential(keras), hook)
    assert caught.value.hook_error is error
    assert count(log, "end") == 0


def test_after_a_failure_all_is_closed_whole_and_usable(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    model = sequential(keras)
    for event in ("begin", "after_create_session", "before_run", "after_run", "end"):
        with subtests.test(str(event)):
            log: list[Event] = []
            error = ValueError("hook")
            hook = Recorder(log, "A", raises={(event, 1): lambda: error})  # noqa: B023
            callback = HookToCallback(hook)
            folder = str(tmp_path / event)
            saver = v1.train.CheckpointSaverHook(folder, save_steps=1)
            methods, threads = set(vars(model)), running()
            with pytest.raises(ValueError, match="hook") as caught:
                fit(model, saver, more=[callback])
            assert caught.value is error
            assert running() <= threads
            assert not {m for m in set(vars(model)) - methods if m.startswith("make_")}
            made = int(np.asarray(model.optimizer.iterations))
            if event != "begin":
                with pytest.raises(RuntimeError, match="closed Session"):
                    hook.sessions[0].run(hook.read)
                reader = tf.train.load_checkpoint(folder)
                assert reader.get_tensor("global_step") == made
                kernel = reader.get_tensor("out/kernel")
                np.testing.assert_array_equal(kernel, model.get_weights()[2])
            # The same hook in a second fit, which continues from the steps made so far.
            del log[:]
            fit(model, more=[callback])
            steps = [e["gs"] for e in log if e["e"] == "after_run"]
            assert steps == [made + 1, made + 2, made + 3]
            assert count(log, "end") == 1
    fit(model)


def test_recovery_closes_the_lost_session(keras: Any) -> None:
    log: list[Event] = []
    lost = tf.errors.AbortedError(None, None, "lost")
    hook = Recorder(log, "A", raises={("after_run", 2): lambda: lost})
    fit(sequential(keras), hook)
    assert len(hook.sessions) == 2
    assert count(log, "begin") == count(log, "end") == 1
    for session in hook.sessions:
        with pytest.raises(RuntimeError, match="closed Session"):
            session.run(hook.read)


def test_queue_runners_of_a_hook_end_with_the_fit(keras: Any) -> None:
    """The coordinator stops the threads, which call `session.run` all the time."""
    values: list[int] = []

    def begin(self: Any) -> None:
        queue = tf.queue.FIFOQueue(2, tf.int64, shapes=[[]])
        zero = v1.zeros_initializer()
        number = v1.get_variable("number", [], tf.int64, zero)
        put = queue.enqueue(v1.assign_add(number, 1))
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [put]))
        self.next = queue.dequeue()

    hook = hook_of(
        begin=begin,
        after_create_session=lambda self, *args: v1.train.start_queue_runners(*args),
        before_run=lambda self, context: v1.train.SessionRunArgs(self.next),
        after_run=lambda self, context, run: values.append(int(run.results)),
    )
    threads = running()
    fit(sequential(keras), hook)
    assert values == [1, 2, 3]
    assert running() <= threads
