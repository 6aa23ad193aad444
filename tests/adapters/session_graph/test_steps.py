"""Which runs of a graph are training steps, for graphs of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import build, feeds
from callback_recorder import step_events

import hookbridge as hb
from hookbridge.adapters.session_graph import step_movers
from hookbridge.adapters.session_graph.steps import StepFinder

ONE_KERAS = True

v1: Any = tf.compat.v1
# Closing a session cancels what the queue runner of SyncReplicas is waiting for, and
# its thread may say so during the next test.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)
Runs = list[tuple[Any, Any]]  # what the loop fetches and feeds


def by_two() -> Runs:
    return [(v1.assign_add(v1.train.get_or_create_global_step(), 2), None)] * 3


def two_train_ops() -> Runs:
    """Alternating training, as of generator and discriminator."""
    net = build()
    other = v1.train.GradientDescentOptimizer(0.01, name="Other").minimize(
        net.mae, global_step=v1.train.get_global_step()
    )
    feed = feeds(net, 0)
    pair = [(net.train_op, feed), ({"other": [other]}, feed)]
    return [*pair, *pair, ([net.train_op, other], feed)]  # two moves in the last run


def without_global_step() -> Runs:
    loss = tf.square(v1.get_variable("w", initializer=1.0), name="loss")
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [(loss, None), (train, None), (train, None)]


def in_a_conditional() -> Runs:
    """Gradient accumulation: the step moves in every second run only."""
    step = v1.train.get_or_create_global_step()
    count = v1.get_variable("count", [], tf.int64, trainable=False)
    tf.cast(count, tf.float32, name="loss")
    counted = count.assign_add(1, read_value=True)
    move = tf.function(lambda: step.assign_add(1))
    train = tf.cond(
        tf.equal(counted % 2, 0), lambda: move() + 0, lambda: step.read_value()
    )
    return [(train, None)] * 4


def in_a_loop_of_tf1() -> Runs:
    """The step moves twice in a `while`: nothing outside can wait for an op in it."""
    step = v1.train.get_or_create_global_step()
    tf.constant(1.0, name="loss")

    def body(count: Any) -> Any:
        with tf.control_dependencies([v1.assign_add(step, 1)]):
            return count + 1

    v1.disable_control_flow_v2()
    try:
        train = v1.while_loop(lambda count: count < 2, body, [0])
    finally:
        v1.enable_control_flow_v2()
    return [(train, None)] * 3


def computed() -> Runs:
    """The graph does not tell how far a run moves the step."""
    loss = tf.square(v1.get_variable("w", initializer=1.0), name="loss")
    count = v1.placeholder_with_default(tf.constant(1, tf.int64), [])
    with tf.control_dependencies([loss]):
        train = v1.assign_add(v1.train.get_or_create_global_step(), count).op
    return [(train, None), (train, {count: 3}), (train, None)]


def read_in_a_conditional() -> Runs:
    """As TensorFlow's hooks read the step: `initialized_value()` is a conditional."""
    step = v1.train.get_or_create_global_step()
    is_there, zero = v1.is_variable_initialized(step), tf.constant(0, tf.int64)
    read = v1.cond(is_there, step.read_value, lambda: zero)
    tf.constant(1.0, name="loss")
    move = v1.assign_add(step, 1)
    return [(read + 0, None), (move, None), (read + 0, None), (move, None)]


# Graph -> its events, with four steps in an epoch.
GRAPHS: dict[Callable[[], Runs], str] = {
    by_two: "begin 0, end 1 at 2, begin 2, end 3 at 4, epoch end 0 at 4, "
    "begin 0, end 1 at 6, epoch end 1 at 6",
    two_train_ops: "begin 0, end 0 at 1, begin 1, end 1 at 2, begin 2, end 2 at 3, "
    "begin 3, end 3 at 4, epoch end 0 at 4, begin 0, end 1 at 6, epoch end 1 at 6",
    without_global_step: "begin 0, end 0 at 1, begin 1, end 1 at 2, epoch end 0 at 2",
    read_in_a_conditional: "begin 0, end 0 at 1, begin 1, end 1 at 2, epoch end 0 at 2",
    computed: "begin 0, end 0 at 1, begin 1, end 3 at 4, epoch end 0 at 4, "
    "begin 0, end 0 at 5, epoch end 1 at 5",
    in_a_conditional: "begin 0, end 0 at 1, begin 1, end 1 at 2, epoch end 0 at 2",
    in_a_loop_of_tf1: "begin 0, end 1 at 2, begin 2, end 3 at 4, epoch end 0 at 4, "
    "begin 0, end 1 at 6, epoch end 1 at 6",
}


@pytest.mark.parametrize("make", GRAPHS)
def test_events_of_a_graph(keras: Any, make: Callable[[], Runs]) -> None:
    log: list[str] = []
    with tf.Graph().as_default():
        runs = make()
        hooks = hb.as_hooks(step_events(keras, log), steps_per_epoch=4)
        with v1.train.MonitoredSession(hooks=hooks) as session:
            for fetches, feed in runs:
                session.run(fetches, feed)
    assert ", ".join(log) == GRAPHS[make]


@pytest.mark.parametrize("make", [in_a_conditional, in_a_loop_of_tf1])
def test_the_step_is_not_read_after_an_op_that_may_not_run(
    make: Callable[[], Runs],
) -> None:
    with tf.Graph().as_default() as graph:
        (train, _), *_ = make()
        kind = StepFinder(graph, v1.train.get_global_step()).kind_of(train)
    assert kind.step is not None and kind.step.tail is None


def test_sync_replicas_counts_steps_by_the_global_step(keras: Any) -> None:
    """Two runs hand over the gradients of one step."""
    log: list[str] = []
    made: list[Any] = []

    def optimizer(rate: float) -> Any:
        inner = v1.train.GradientDescentOptimizer(rate)
        made.append(v1.train.SyncReplicasOptimizer(inner, 2, total_num_replicas=1))
        return made[0]

    with tf.Graph().as_default():
        net = build(0.1, optimizer)
        sync = made[0].make_session_run_hook(is_chief=True, num_tokens=1)
        hooks = [sync, *hb.as_hooks(step_events(keras, log), steps_per_epoch=2)]
        with v1.train.MonitoredTrainingSession(
            hooks=hooks, stop_grace_period_secs=1
        ) as session:
            for run in range(6):
                session.run(net.train_op, feeds(net, run))
    assert ", ".join(log) == (
        "begin 0, end 0 at 1, begin 1, end 1 at 2, epoch end 0 at 2, "
        "begin 0, end 0 at 3, epoch end 1 at 3"
    )


@pytest.mark.parametrize("resource", [True, False])
def test_what_is_a_step(resource: bool) -> None:
    with tf.Graph().as_default() as graph:
        with v1.variable_scope("", use_resource=resource):
            step = v1.train.get_or_create_global_step()
            net = build()
            by_hand = v1.assign(step, step + 1)
            restore = v1.train.Saver()
            set_to = v1.assign(step, tf.constant(5, tf.int64))
        steps = StepFinder(graph, step)
        assert steps.trains
        for fetches in (
            net.train_op,
            [net.loss, net.train_op],
            {"a": (net.loss, {"b": net.train_op})},
            net.train_op.name,
            by_hand,
        ):
            assert steps.kind_of(fetches).step is not None, fetches
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
            assert steps.kind_of(fetches).step is None, fetches
        fetches = [net.loss]  # a list that is changed and fetched again
        assert steps.kind_of(fetches).step is None
        fetches.append(net.train_op)
        assert steps.kind_of(fetches).step is not None


def test_a_call_of_a_function_that_the_graph_lacks_is_no_step() -> None:
    """A graph can be built with such a call, and no session can run it."""
    with tf.Graph().as_default() as graph:
        step = v1.train.get_or_create_global_step()
        (handle, *_) = step.op.outputs
        kind = handle.dtype.as_datatype_enum
        attributes = {
            "Tin": v1.AttrValue(list=v1.AttrValue.ListValue(type=[kind])),
            "Tout": v1.AttrValue(list=v1.AttrValue.ListValue(type=[kind])),
            "f": v1.AttrValue(func=v1.NameAttrList(name="absent")),
        }
        call = graph.create_op(
            "StatefulPartitionedCall", [handle], [handle.dtype], attrs=attributes
        )
        assert not step_movers.find_movers(graph, step, [call])
        assert call not in step_movers.find_writers(graph, step)
        with v1.Session() as session, pytest.raises(Exception, match="absent"):
            session.run(call)
