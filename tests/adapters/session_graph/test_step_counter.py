"""Where the global step is counted instead of read, and what else may move it."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from callback_loops import build, feeds
from callback_recorder import noting

import hookbridge as hb
from hookbridge.adapters.session_graph.steps import StepGraph

ONE_KERAS = True

v1: Any = tf.compat.v1
TRACE = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)


def recorder(keras: Any, log: list[Any]) -> Any:
    def note(callback: Any, event: str, index: int, *logs: Any) -> None:
        if event == "on_epoch_end":
            step = int(callback.model.optimizer.iterations.numpy())
            log.append(("epoch", index, step))
        else:
            log.append((event.rpartition("_")[2], index))

    events = ("on_train_batch_begin", "on_train_batch_end", "on_epoch_end")
    return noting(keras, note, events)


def nodes_of_a_step(session: Any, train_op: Any) -> list[str]:
    """The ops of the graph that a step runs for the callbacks."""
    metadata = v1.RunMetadata()
    session.run(train_op, options=TRACE, run_metadata=metadata)
    names = [n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats]
    assert names
    return [n for n in names if n.startswith("hookbridge/")]


@pytest.mark.parametrize("increment", ["constant", "computed"])
def test_step_is_read_only_where_the_graph_does_not_tell(
    keras: Any, increment: str
) -> None:
    log: list[Any] = []
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        weight = v1.get_variable("w", initializer=1.0)
        count = v1.placeholder_with_default(tf.constant(1, tf.int64), [])
        loss = tf.square(weight, name="loss")
        update = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([update]):
            by = 1 if increment == "constant" else count
            train = v1.assign_add(step, by).op
        hooks = hb.as_hooks(recorder(keras, log), steps_per_epoch=2)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(train)
            extra = nodes_of_a_step(session, train)
            session.run(train)
    assert bool(extra) == (increment == "computed")
    assert [e for e in log if e[0] != "begin"] == [
        ("end", 0),
        ("end", 1),
        ("epoch", 0, 2),
        ("end", 0),
        ("epoch", 1, 3),
    ]


class StepsByCallable(v1.train.SessionRunHook):  # type: ignore[misc]
    """Takes one step through a callable, after the third step of the loop."""

    def __init__(self, train: Any, late: bool) -> None:
        self._train = train
        self._late = late
        self._runs = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        if not self._late:
            self._step = session.make_callable(self._train)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._runs += 1
        if self._runs == 2 and self._late:
            self._step = run_context.session.make_callable(self._train)
        if self._runs == 3:
            self._step()


@pytest.mark.parametrize("made", ["after", "late", "before"])
def test_steps_taken_through_a_callable(keras: Any, made: str) -> None:
    """A callable made before the callbacks: its step shows at the end of the epoch."""
    log: list[Any] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        loss = tf.square(weight, name="loss")
        train = v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, v1.train.get_or_create_global_step()
        )
        hooks = hb.as_hooks(recorder(keras, log), steps_per_epoch=5)
        other = StepsByCallable(train, late=made == "late")
        hooks = [other, *hooks] if made == "before" else [*hooks, other]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(9):
                session.run(train)
            assert session.run(v1.train.get_global_step()) == 10
    epochs = [e for e in log if e[0] == "epoch"]
    if made == "before":
        # The loop's first five steps were six: the first epoch ended one step late.
        assert epochs == [("epoch", 0, 6), ("epoch", 1, 10)]
    else:
        assert epochs == [("epoch", 0, 5), ("epoch", 1, 10)]


def test_step_that_is_set_between_two_steps(keras: Any) -> None:
    """As when a hook restores an earlier checkpoint into the session."""
    log: list[Any] = []
    with tf.Graph().as_default():
        net = build()
        step = v1.train.get_global_step()
        hooks = hb.as_hooks(recorder(keras, log), steps_per_epoch=10)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for n in range(3):
                session.run(net.train_op, feeds(net, n))
            session.run_step_fn(lambda step_context: step.load(1, step_context.session))
            session.run(net.train_op, feeds(net, 0))
    assert [e[1] for e in log if e[0] == "end"] == [0, 1, 2, 1]
    assert [e[1] for e in log if e[0] == "begin"] == [0, 1, 2, 1]


def test_other_sessions_on_a_server_move_the_step(keras: Any) -> None:
    """As other workers of a cluster do: each step must read the global step."""
    log: list[Any] = []
    server = tf.distribute.Server.create_local_server()
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        loss = tf.square(weight, name="loss")
        train = v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, v1.train.get_or_create_global_step()
        )
        hooks = hb.as_hooks(recorder(keras, log), steps_per_epoch=3)
        with (
            v1.train.MonitoredTrainingSession(server.target, hooks=hooks) as session,
            v1.Session(server.target) as worker,
        ):
            for each in (session, worker, session, worker, session):
                each.run(train)
            assert worker.run(v1.train.get_global_step()) == 5
    assert [e for e in log if e[0] != "begin"] == [
        ("end", 0),
        ("end", 2),
        ("epoch", 0, 3),
        ("end", 1),
        ("epoch", 1, 5),
    ]


class StepInStep(v1.train.SessionRunHook):  # type: ignore[misc]
    """Takes a step within a step of the loop, before the callbacks handle that one."""

    def __init__(self, net: Any) -> None:
        self._net = net
        self.runs = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1
        if self.runs == 3:
            run_context.session.run(self._net.train_op, feeds(self._net, 0))


def script(session: Any, net: Any) -> None:
    """Steps of several kinds, runs that are no steps, a failure, a step set back."""
    step = v1.train.get_global_step()
    lists = [net.train_op, net.loss]
    for n in range(4):
        session.run(lists, feeds(net, n))
        session.run(net.loss, feeds(net, n))  # no step
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(net.train_op)  # nothing is fed: as if the data had ended
    for n in range(7):
        session.run([net.train_op, net.loss] if n % 3 else net.train_op, feeds(net, n))
        session.run(step)
    raw = feeds(net, 0)
    session.run_step_fn(
        lambda step_context: step_context.session.run(net.train_op, raw)
    )
    for n in range(3):
        session.run((net.train_op,), feeds(net, n))
    session.run_step_fn(lambda step_context: step.load(3, step_context.session))
    for n in range(9):
        session.run(net.train_op, feeds(net, n))


def test_epochs_are_the_same_whether_anybody_wants_batches(keras: Any) -> None:
    class Epochs(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            step = int(self.model.optimizer.iterations.numpy())
            told[-1].append(("begin", other.runs, epoch, step))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            step = int(self.model.optimizer.iterations.numpy())
            told[-1].append(("end", other.runs, epoch, step, logs["loss"]))

        def on_train_end(self, logs: Any = None) -> None:
            told[-1].append(("train_end", logs["loss"]))

    told: list[list[Any]] = []
    seen: list[Any] = []
    for others in ([], [recorder(keras, seen)]):
        told.append([])
        with tf.Graph().as_default():
            net = build()
            other = StepInStep(net)
            guests = [other, Epochs(), *others]
            hooks = hb.as_hooks(guests, steps_per_epoch=3)
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                script(session, net)
    assert len(told[0]) > 12 and seen
    for alone, beside in zip(*told, strict=True):
        assert alone[:-1] == beside[:-1]
        assert alone[-1] == pytest.approx(beside[-1], rel=1e-6)


@pytest.mark.parametrize(("writes", "body"), [(False, 0), (True, 5)])
def test_a_conditional_that_only_reads_the_step_is_no_writer(
    graph: Any, writes: bool, body: int
) -> None:
    v1 = tf.compat.v1
    step = v1.get_variable(
        "global_step", [], tf.int64, trainable=False, use_resource=True,
        initializer=v1.zeros_initializer(), collections=["global_step", "variables"],
    )  # fmt: skip

    def read() -> Any:
        if not body:
            return step.read_value()
        with tf.control_dependencies([step.assign(body, read_value=False)]):
            return step.read_value()

    # As TensorFlow's hooks read the step: `initialized_value()` is a conditional.
    fetched = v1.cond(
        v1.is_variable_initialized(step), read, lambda: tf.constant(0, tf.int64)
    )
    with v1.Session() as session:
        session.run(step.initializer)
        session.run(fetched + 0)
        moved = session.run(step) != 0
    assert StepGraph(graph, step).writes(fetched + 0) is writes
    assert bool(moved) is writes
