"""Features of `tf.compat.v1.Session` other than `run`, and resources of hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import tensorflow as tf
from trace_hosts import LiveHost

from hookbridge import errors
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.ground import compat
from hookbridge.ground.structures import structure_key

v1 = tf.compat.v1


Opens = Callable[[], LiveSession]


@pytest.fixture(scope="module")
def host() -> LiveHost:
    return LiveHost(tf.keras)


@pytest.fixture
def opens(host: LiveHost) -> Iterator[Opens]:
    """Opens sessions on the live graph that is the default one."""
    with host.graph() as graph:
        yield lambda: host.session(graph)


def test_each_session_has_its_own_variables_until_it_is_closed(opens: Opens) -> None:
    variable = v1.get_variable("mine", shape=[], initializer=v1.zeros_initializer())
    add = v1.assign_add(variable, 1.0)
    first, second = opens(), opens()
    for session in (first, second):
        session.run(variable.initializer)
    assert [first.run(add), first.run(add), second.run(add)] == [1.0, 2.0, 1.0]
    assert first.run(variable) == 2.0
    program = first._plans.get((structure_key(add), ())).program
    with compat.private("eager_mode")():
        assert program.run_alone([], {}, program.traced_alone)[0] == 3.0
        first.close()
        with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
            program.run_alone([], {}, program.traced_alone)


def test_iterators_and_queues_are_shared_by_runs(opens: Opens) -> None:
    element = v1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
    double = element * 2
    named = v1.data.make_initializable_iterator(tf.data.Dataset.range(3).map(abs))
    item = named.get_next()
    negative = -item
    queue = tf.queue.FIFOQueue(5, tf.int32, shapes=[[]])
    put = queue.enqueue(7)
    session = opens()
    session.run([named.initializer, put])
    assert [session.run(element), session.run(double)] == [0, 2]
    assert [session.run(item), session.run(negative)] == [0, -1]
    assert session.run(queue.size()) == 1
    assert session.run(queue.dequeue()) == 7
    assert session.run(element) == 2
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(double)


def test_callables_but_no_parts_of_runs(opens: Opens) -> None:
    p = v1.placeholder(tf.float32, [])
    session = opens()
    double = session.make_callable(p * 2.0, [p])
    assert double(3.0) == 6.0
    with pytest.raises(ValueError, match="Expected 1 values"):
        double()
    with pytest.raises(TypeError, match="accept_options"):
        double(3.0, options=v1.RunOptions())
    with pytest.raises(errors.LiveSessionError, match="Call `run` for each part"):
        session.partial_run_setup([p])
    with pytest.raises(errors.LiveSessionError, match="Call `run` for each part"):
        session.partial_run("handle", p)


def test_session_as_default_evaluates(opens: Opens) -> None:
    with opens() as session:
        assert isinstance(session, LiveSession)
        assert tf.constant(2.0).eval() == 2.0
        assert session.list_devices()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(tf.constant(1.0))


def test_timeout_cancels_the_run(opens: Opens) -> None:
    empty = tf.queue.FIFOQueue(1, tf.int32, shapes=[[]]).dequeue()
    session = opens()
    with pytest.raises(tf.errors.DeadlineExceededError, match="50 ms"):
        session.run(empty, options=v1.RunOptions(timeout_in_ms=50))


def test_trace_names_the_ops(opens: Opens) -> None:
    square = tf.matmul(tf.ones([8, 8]), tf.random.uniform([8, 8]), name="square")
    options = v1.RunOptions(
        trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True
    )
    metadata = v1.RunMetadata()
    opens().run(square, options=options, run_metadata=metadata)
    nodes = [n for d in metadata.step_stats.dev_stats for n in d.node_stats]
    assert any("square" in node.node_name for node in nodes)
    assert any(
        node.name.endswith("square")
        for graph in metadata.partition_graphs
        for node in graph.node
    )


def test_variables_of_every_kind(opens: Opens) -> None:
    ones = v1.ones_initializer()
    variable = v1.get_variable("ref", [], initializer=ones, use_resource=False)
    add = v1.assign_add(variable, 1.0)
    values = v1.placeholder(tf.float32, [None])
    mean, update = v1.metrics.mean(values)
    kernel = next(v for v in v1.global_variables() if "kernel" in v.name)
    gradient = tf.gradients(tf.reduce_sum(kernel * kernel), kernel)[0]
    session = opens()
    session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
    assert [session.run(add), session.run(variable)] == [2.0, 2.0]
    assert session.run(v1.report_uninitialized_variables()).size == 0
    assert session.run(update, {values: [1.0, 2.0, 3.0]}) == 2.0
    assert session.run(mean) == 2.0
    value, slope = session.run([kernel, gradient])
    np.testing.assert_array_equal(slope, 2 * value)


def test_tables_and_loops(opens: Opens) -> None:
    pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    found = tf.lookup.StaticHashTable(pairs, -1).lookup(tf.constant(["b", "z"]))
    (last,) = tf.while_loop(lambda i: i < 5, lambda i: [i + 1], [tf.constant(0)])
    session = opens()
    session.run(v1.tables_initializer())
    assert session.run(found).tolist() == [2, -1]
    assert session.run(last) == 5
