"""Which runs of a session are steps, and more than one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, X, Y, build, feeds, fit, session_loop
from callback_recorder import recorder

import hookbridge as hb

ONE_KERAS = True


def _loop(keras: Any, body: Any, **options: Any) -> list[Any]:
    """Events while `body(session, net, extras)` runs; `extras` are no train ops."""
    log: list[Any] = []
    options.setdefault("steps_per_epoch", STEPS)
    with tf.Graph().as_default():
        net = build()
        queue = tf.queue.FIFOQueue(5, tf.float32, [])
        words = tf.lookup.KeyValueTensorInitializer(["a"], [1])
        tf.lookup.StaticHashTable(words, 0)
        data = tf.compat.v1.data.make_initializable_iterator(
            tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
        )
        extras = {
            "data": data.get_next(),
            "init": data.initializer,
            "size": queue.size(),
            "step": tf.compat.v1.train.get_global_step(),
            "local": tf.compat.v1.local_variables_initializer(),
            "tables": tf.compat.v1.tables_initializer(),
        }
        hooks = hb.as_hooks(recorder(keras, log, "A"), **options)
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            body(session, net, extras)
    return [e[:4:1] for e in log]


def test_runs_that_are_no_steps_fire_nothing(keras: Any) -> None:
    def body(session: Any, net: Any, extras: Any) -> None:
        session.run([extras["init"], extras["tables"]])
        session.run(extras["data"])
        session.run([extras["size"], extras["step"]])
        session.run({"a": extras["local"], "b": "global_step:0"})
        session.run(net.loss, feeds(net, 0))
        session.run_step_fn(
            lambda step_context: step_context.session.run(net.train_op, feeds(net, 0))
        )

    assert [e[0] for e in _loop(keras, body)] == ["on_train_begin", "on_train_end"]


def test_raw_steps_count_for_epochs_without_events(keras: Any) -> None:
    """Raw steps have no events; events of a later step have that step's number."""

    def body(session: Any, net: Any, extras: Any) -> None:
        def raw() -> None:
            session.run_step_fn(
                lambda step_context: step_context.session.run(
                    net.train_op, feeds(net, 0)
                )
            )

        def step() -> None:
            session.run([net.train_op, net.loss], feeds(net, 0))

        for run in (raw, step, step, step, raw, step, step, raw, raw, raw, step):
            run()

    events = [e for e in _loop(keras, body) if "batch" in e[0] or "epoch" in e[0]]
    assert [(e[0].removeprefix("on_"), e[2]) for e in events] == [
        ("epoch_begin", 0),
        ("train_batch_begin", 1),
        ("train_batch_end", 1),
        ("train_batch_begin", 2),
        ("train_batch_end", 2),
        ("epoch_end", 0),
        ("epoch_begin", 1),
        ("train_batch_begin", 0),
        ("train_batch_end", 0),
        ("train_batch_begin", 2),
        ("train_batch_end", 2),
        ("epoch_end", 1),
        ("epoch_begin", 2),
        ("train_batch_begin", 0),
        ("train_batch_end", 0),
        # Raw steps took the rest of the epoch: it ends when the next step begins.
        ("epoch_end", 2),
        ("epoch_begin", 3),
        ("train_batch_begin", 1),
        ("train_batch_end", 1),
        ("epoch_end", 3),
    ]


def test_end_of_data_in_mid_epoch_ends_the_epoch(keras: Any) -> None:
    log: list[Any] = []
    with tf.Graph().as_default():
        step = tf.compat.v1.train.get_or_create_global_step()
        data = tf.compat.v1.data.make_one_shot_iterator(
            tf.data.Dataset.from_tensor_slices(X).batch(4).repeat(2)
        )
        kernel = tf.compat.v1.get_variable("kernel", [2, 1])
        loss = tf.reduce_mean(tf.square(data.get_next() @ kernel), name="loss")
        train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, global_step=step
        )
        hooks = hb.as_hooks(recorder(keras, log, "A"), steps_per_epoch=4)
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train)
    assert [(e[0], e[2]) for e in log if "epoch" in e[0]] == [
        ("on_epoch_begin", 0),
        ("on_epoch_end", 0),
        ("on_epoch_begin", 1),
        ("on_epoch_end", 1),
    ]
    # As in `fit`, the step that met the end of the data began and did not end.
    assert [e[0] for e in log][-3:] == [
        "on_train_batch_begin",
        "on_epoch_end",
        "on_train_end",
    ]


def test_reinitialised_iterator_begins_the_next_epoch(keras: Any) -> None:
    log: list[Any] = []
    with tf.Graph().as_default():
        step = tf.compat.v1.train.get_or_create_global_step()
        data = tf.compat.v1.data.make_initializable_iterator(
            tf.data.Dataset.from_tensor_slices(X).batch(4)
        )
        kernel = tf.compat.v1.get_variable("kernel", [2, 1])
        loss = tf.reduce_mean(tf.square(data.get_next() @ kernel), name="loss")
        train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, global_step=step
        )
        hooks = hb.as_hooks(recorder(keras, log, "A"), steps_per_epoch=100)
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(2):
                session.run(data.initializer)
                with pytest.raises(tf.errors.OutOfRangeError):
                    while True:
                        session.run(train)
    assert [(e[0], e[2], e[3]) for e in log if "epoch" in e[0]] == [
        ("on_epoch_begin", 0, 0),
        ("on_epoch_end", 0, 3),
        ("on_epoch_begin", 1, 3),
        ("on_epoch_end", 1, 6),
    ]


def test_resumed_run_begins_at_its_epoch_and_batch(keras: Any, tmp_path: Any) -> None:
    log: list[Any] = []
    options: dict[str, Any] = {"session_options": {"checkpoint_dir": str(tmp_path)}}
    session_loop([recorder(keras, [], "A")], max_steps=4, **options)
    session_loop([recorder(keras, log, "A")], validate=False, epochs=3, **options)
    assert [(e[0], e[2], e[3]) for e in log][:4] == [
        ("on_train_begin", None, 4),
        ("on_epoch_begin", 1, 4),
        ("on_train_batch_begin", 1, 4),
        ("on_train_batch_end", 1, 5),
    ]
    assert log[-1][3] == 9


def test_finished_run_takes_no_further_step(keras: Any, tmp_path: Any) -> None:
    options: dict[str, Any] = {"session_options": {"checkpoint_dir": str(tmp_path)}}
    session_loop([recorder(keras, [], "A")], epochs=2, **options)
    log: list[Any] = []
    run = session_loop([recorder(keras, log, "A")], epochs=2, **options)
    assert [e[0] for e in log] == ["on_train_begin", "on_train_end"]
    assert run.steps == 2 * STEPS


def test_recovery_does_not_begin_the_training_again(keras: Any, tmp_path: Any) -> None:
    log: list[Any] = []

    class Abort(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        runs = 0

        def before_run(self, run_context: Any) -> None:
            self.runs += 1
            if self.runs == 3:
                raise tf.errors.AbortedError(None, None, "lost a server")

    session_loop(
        [recorder(keras, log, "A")],
        validate=False,
        epochs=2,
        session_options={"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 1},
        wrap=lambda hooks: [*hooks, Abort()],
    )
    counts = Counter(e[0] for e in log)
    assert counts["on_train_begin"] == counts["on_train_end"] == 1
    assert counts["on_epoch_begin"] == counts["on_epoch_end"] == 2
    assert counts["on_train_batch_begin"] == 2 * STEPS + 1
    assert counts["on_train_batch_end"] == 2 * STEPS


def test_same_hooks_serve_one_session_after_the_other(keras: Any) -> None:
    log: list[Any] = []
    callbacks: Sequence[Any] = [recorder(keras, log, "A"), recorder(keras, log, "B")]
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS, epochs=1)
    runs = []
    for _ in range(2):
        with tf.Graph().as_default():
            net = build()
            with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                while not session.should_stop():
                    session.run(net.train_op, feeds(net, 0))
        runs.append(list(log))
        log.clear()
    assert runs[0] == runs[1]
    assert [hook.callback for hook in hooks] == list(callbacks)


@pytest.mark.slow
def test_same_callback_serves_fit_before_and_after(keras: Any) -> None:
    log: list[Any] = []
    callback = recorder(keras, log, "A")
    runs = []
    for native in (True, False, True, False):
        if native:
            fit(keras, [callback])
        else:
            session_loop([callback])
        runs.append(list(log))
        log.clear()
    assert runs[0] == runs[1] == runs[2] == runs[3]
