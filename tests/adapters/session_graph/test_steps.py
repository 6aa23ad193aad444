"""Which runs of a graph are training steps, for graphs of every kind."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import build, feeds

import hookbridge as hb
from hookbridge import structures
from hookbridge.adapters.session_graph import logs as log_sources
from hookbridge.adapters.session_graph import steps as session_steps
from hookbridge.adapters.session_graph.steps import Step, StepGraph

ONE_KERAS = True

v1 = tf.compat.v1
# Closing a session cancels what the queue runner of SyncReplicas is waiting for, and
# its thread may say so during the next test.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)


def batches(keras: Any, log: list[Any]) -> Any:
    class Batches(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            log.append(("begin", batch))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            log.append(("end", batch, int(self.model.optimizer.iterations.numpy())))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            log.append(("epoch", epoch))

    return Batches()


def test_sync_replicas_counts_steps_by_the_global_step(keras: Any) -> None:
    """Two runs hand over the gradients of one step."""
    log: list[Any] = []
    with tf.Graph().as_default():
        made: list[Any] = []

        def optimizer(rate: float) -> Any:
            made.append(
                v1.train.SyncReplicasOptimizer(
                    v1.train.GradientDescentOptimizer(rate),
                    replicas_to_aggregate=2,
                    total_num_replicas=1,
                )
            )
            return made[0]

        net = build(0.1, optimizer)
        sync = made[0].make_session_run_hook(is_chief=True, num_tokens=1)
        hooks = hb.as_hooks(batches(keras, log), steps_per_epoch=2)
        with v1.train.MonitoredTrainingSession(
            hooks=[sync, *hooks], stop_grace_period_secs=1
        ) as session:
            for run in range(6):
                session.run(net.train_op, feeds(net, run))
    assert log == [
        ("begin", 0),
        ("end", 0, 1),
        ("begin", 1),
        ("end", 1, 2),
        ("epoch", 0),
        ("begin", 0),
        ("end", 0, 3),
        ("epoch", 1),
    ]


def test_step_that_moves_by_two(keras: Any) -> None:
    log: list[Any] = []
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        train = v1.assign_add(step, 2)
        hooks = hb.as_hooks(batches(keras, log), steps_per_epoch=4)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(3):
                session.run(train)
    assert log == [
        ("begin", 0),
        ("end", 1, 2),
        ("begin", 2),
        ("end", 3, 4),
        ("epoch", 0),
        ("begin", 0),
        ("end", 1, 6),
        ("epoch", 1),
    ]


def test_two_train_ops_each_are_a_step(keras: Any) -> None:
    """Alternating training, as of generator and discriminator."""
    log: list[Any] = []
    with tf.Graph().as_default():
        net = build()
        other = v1.train.GradientDescentOptimizer(0.01, name="Other").minimize(
            net.mae, global_step=v1.train.get_global_step()
        )
        hooks = hb.as_hooks(batches(keras, log), steps_per_epoch=4)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for run in range(2):
                session.run(net.train_op, feeds(net, run))
                session.run({"other": [other]}, feeds(net, run))
            session.run([net.train_op, other], feeds(net, 0))  # two moves in one run
    assert [e for e in log if e[0] == "end"] == [
        ("end", 0, 1),
        ("end", 1, 2),
        ("end", 2, 3),
        ("end", 3, 4),
        ("end", 1, 6),
    ]


def test_training_without_a_global_step_counts_updates(keras: Any) -> None:
    log: list[Any] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=1.0)
        loss = tf.square(weight, name="loss")
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        hooks = hb.as_hooks(batches(keras, log), steps_per_epoch=2)
        with v1.train.MonitoredSession(hooks=hooks) as session:
            session.run(loss)
            for _ in range(2):
                session.run(train)
    assert log == [
        ("begin", 0),
        ("end", 0, 1),
        ("begin", 1),
        ("end", 1, 2),
        ("epoch", 0),
    ]


def test_update_in_a_conditional_or_a_function(keras: Any) -> None:
    """Gradient accumulation: the step moves in every second run only."""
    log: list[Any] = []
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        count = v1.get_variable("count", [], tf.int64, trainable=False)
        loss = tf.cast(count, tf.float32, name="loss")
        counted = count.assign_add(1, read_value=True)

        @tf.function  # type: ignore[untyped-decorator]
        def move() -> Any:
            return step.assign_add(1)

        train = tf.cond(
            tf.equal(counted % 2, 0), lambda: move() + 0, lambda: step.read_value()
        )
        hooks = hb.as_hooks(batches(keras, log), steps_per_epoch=100)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(4):
                session.run(train)
        del loss
    assert log == [
        ("begin", 0),
        ("end", 0, 1),
        ("begin", 1),
        ("end", 1, 2),
        ("epoch", 0),
    ]


@pytest.mark.parametrize("resource", [True, False])
def test_what_is_a_step(resource: bool) -> None:
    with tf.Graph().as_default() as graph:
        v1.disable_resource_variables()
        try:
            with v1.variable_scope("", use_resource=resource):
                step = v1.train.get_or_create_global_step()
                net = build()
                by_hand = v1.assign(step, step + 1)
                restore = v1.train.Saver()
                set_to = v1.assign(step, tf.constant(5, tf.int64))
        finally:
            v1.enable_resource_variables()
        steps = StepGraph(graph, step)
        assert steps.trains
        for fetches in (
            net.train_op,
            [net.loss, net.train_op],
            {"a": (net.loss, {"b": net.train_op})},
            net.train_op.name,
            by_hand,
        ):
            assert steps.step_of(fetches) is not None, fetches
            assert steps.step_of(fetches) is steps.step_of(fetches)
        for fetches in (
            net.loss,
            step,
            "loss:0",
            [],
            None,
            step.initializer,
            v1.global_variables_initializer(),
            restore.saver_def.restore_op_name,
            set_to,
            tf.SparseTensor([[0]], [1.0], [1]),
        ):
            assert steps.step_of(fetches) is None, fetches


def test_list_that_is_changed_and_fetched_again() -> None:
    with tf.Graph().as_default() as graph:
        net = build()
        steps = StepGraph(graph, v1.train.get_global_step())
        fetches = [net.loss]
        assert steps.step_of(fetches) is None
        fetches.append(net.train_op)
        assert steps.step_of(fetches) is not None
        fetches.pop()
        assert steps.step_of(fetches) is None


def test_new_fetches_in_every_step_do_not_pile_up(
    keras: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: weakref.WeakSet[Any] = weakref.WeakSet()

    class Noted(Step):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            steps.add(self)

    monkeypatch.setattr(session_steps, "Step", Noted)
    monkeypatch.setattr(structures, "MOST", 2)
    log: list[Any] = []
    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks([batches(keras, log)], steps_per_epoch=5)
        with v1.train.MonitoredSession(hooks=hooks) as session:
            for i in range(20):
                session.run({f"step {i}": net.train_op}, feeds(net, i))
            gc.collect()
            assert 0 < len(steps) <= 2 * structures.MOST
    assert sum(event[0] == "end" for event in log) == 20


def test_loss_is_found(keras: Any) -> None:
    def found(make: Any) -> Any:
        with tf.Graph().as_default() as graph:
            made = make()
            tensor = log_sources.find_loss(graph)
            return getattr(tensor, "name", None) == getattr(made, "name", None)

    def summary() -> Any:
        tf.constant(1.0, name="loss")
        loss = tf.constant(2.0) * 1
        v1.summary.scalar("loss", loss)
        return loss

    assert found(summary)
    assert found(lambda: tf.constant(1.0, name="loss"))
    assert found(lambda: None)
    with tf.Graph().as_default() as graph:
        v1.losses.add_loss(tf.constant(1.0))
        v1.losses.add_loss(tf.constant(2.0))
        loss = log_sources.find_loss(graph)
        with v1.Session() as session:
            assert session.run(loss) == 3.0
