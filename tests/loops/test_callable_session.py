"""Callable sessions give what `Session.run` gives; see also the recorded scenarios."""

from __future__ import annotations

import collections
import gc
import inspect
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from estimator_models import estimators
from fork_server import ForkServer
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge.jobs.loops import callable_session
from hookbridge.jobs.loops.callable_session import CallableSession, CallableSessionHook

v1: Any = tf.compat.v1

Pair = collections.namedtuple("Pair", ["a", "b"])


@pytest.fixture
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fed values of each run that went through a callable."""
    made: list[Any] = []
    original = callable_session._Step.call

    def call(self: Any, session: Any, feeds: Any) -> Any:
        step = original(self, session, feeds)
        if step is not None:
            made.append(step.args)
        return step

    monkeypatch.setattr(callable_session._Step, "call", call)
    return made


def adopted(config: Any = None) -> Any:
    session = v1.Session(config=config)
    assert CallableSession.adopt(session)
    return session


def test_training_session_takes_what_tensorflow_s_takes(graph: Any) -> None:
    """Each argument of `MonitoredTrainingSession`, by keyword."""
    parameters = inspect.signature(v1.train.MonitoredTrainingSession).parameters
    given = {name: each.default for name, each in parameters.items()}
    given["config"] = v1.ConfigProto(log_device_placement=False)
    step = v1.train.get_or_create_global_step().assign_add(1)
    with hb.loops.training_session(**given) as session:
        assert [session.run(step) for _ in range(2)] == [1, 2]


def test_changed_fetches_and_new_ops_are_other_fetches(
    graph: Any, calls: list[Any]
) -> None:
    a, b = tf.constant(1), tf.constant(2)
    fetches = {"x": a}
    with adopted() as session:
        assert [session.run(fetches) for _ in range(2)] == [{"x": 1}] * 2
        fetches["y"] = b
        assert [session.run(fetches) for _ in range(2)] == [{"x": 1, "y": 2}] * 2
        fetches["x"] = b
        assert [session.run(fetches) for _ in range(2)] == [{"x": 2, "y": 2}] * 2
        assert [session.run({"x": a}) for _ in range(2)] == [{"x": 1}] * 2
        assert len(calls) == 5  # the last fetches had a callable already
        new = a + b
        assert [session.run([new]) for _ in range(2)] == [[3]] * 2


def test_what_stays_ordinary(graph: Any, calls: list[Any]) -> None:
    x = v1.placeholder_with_default(1.0, [], name="x")
    text = v1.placeholder(tf.string, [])
    sparse = v1.sparse_placeholder(tf.float32, [2])
    value = v1.SparseTensorValue([[0]], [2.0], [2])
    trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    ragged = tf.RaggedTensor.from_row_splits(tf.constant([1, 2]), [0, 1, 2])
    with adopted() as session:
        for _ in range(3):
            metadata = v1.RunMetadata()
            session.run(x, options=trace, run_metadata=metadata)
            assert metadata.step_stats.dev_stats
            assert session.run(ragged).to_list() == [[1], [2]]
            assert session.run({"caller": []}) == {"caller": []}
            assert session.run([x, x + 1.0], {x: 5.0}) == [5.0, 6.0]
            assert session.run(tf.strings.length(text), {text: "abc"}) == 3
            dense = session.run(v1.sparse_tensor_to_dense(sparse), {sparse: value})
            assert dense.tolist() == [2.0, 0.0]
        assert not calls
        assert [session.run(x, options=v1.RunOptions()) for _ in range(2)] == [1.0] * 2
        assert len(calls) == 1
        session.run(x, run_metadata=metadata)
    assert len(calls) == 2
    assert not metadata.ByteSize()


def test_a_deleted_session_is_gone(graph: Any) -> None:
    x = tf.constant(1.0)
    with adopted() as session:
        for _ in range(2):
            session.run(x + 1.0), session.run(x + 1.0, {x: 2.0})
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None


def test_sessions_that_would_change_are_left_alone(
    subtests: pytest.Subtests, graph: Any
) -> None:
    class Own(tf.compat.v1.Session):  # type: ignore[misc]
        pass

    named = v1.ConfigProto()
    named.experimental.session_metadata.name = "named"
    server = v1.train.Server.create_local_server()
    for session in (
        Own(),
        v1.Session(config=named),
        v1.Session(server.target),
    ):
        with subtests.test(str(session)):
            before = type(session)
            CallableSessionHook().after_create_session(session, None)
            assert type(session) is before
            session.close()


def test_a_session_that_measures_costs_is_left_alone(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    """In a process of its own: TensorFlow measures all memory of it from then on.

    It then frees the counter of that memory too early, and later steps crash.
    """
    program = tmp_path / "measuring.py"
    program.write_text(
        "import tensorflow as tf\n"
        "from hookbridge.jobs.loops.callable_session import CallableSession\n"
        "v1 = tf.compat.v1\n"
        "options = v1.GraphOptions(build_cost_model=1)\n"
        "with tf.Graph().as_default():\n"
        "    session = v1.Session(config=v1.ConfigProto(graph_options=options))\n"
        "    print(CallableSession.adopt(session), type(session) is v1.Session)\n"
    )
    done = fork_server.run(str(program), folder=tmp_path)
    assert done.stdout == "False True\n", done.stderr


def test_recovered_session_is_adopted_too(graph: Any, calls: list[Any]) -> None:
    step = v1.train.get_or_create_global_step()
    op = v1.assign_add(step, 1).op
    seen = []

    class Failing(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> None:
            seen.append(run_context.session)
            if len(seen) == 3:
                raise tf.errors.AbortedError(None, None, "lost")

    hooks = [Failing(), v1.train.StopAtStepHook(last_step=4)]
    turns = 0
    with hb.loops.training_session(hooks, log_step_count_steps=0) as session:
        while not session.should_stop():
            session.run(op)
            turns += 1
    assert len(set(map(id, seen))) == 2
    assert {type(s) for s in seen} == {CallableSession}
    # The recovery lost two steps. The first step of each session has no callable.
    assert (turns, len(calls)) == (6, 4)


def test_other_sessions_with_hooks_are_adopted(tmp_path: Path) -> None:
    """That of a `SingularMonitoredSession`, and those of an Estimator's loops."""
    kinds: list[type] = []
    look = hook_of(
        after_run=lambda self, context, values: kinds.append(type(context.session))
    )
    hooks = [CallableSessionHook(), look]
    with tf.Graph().as_default():
        one = tf.constant(1)
        with v1.train.SingularMonitoredSession(hooks) as session:
            session.run(one)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
        loss, step = weight * features, v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return estimators.EstimatorSpec(mode, features, tf.reduce_mean(loss), train_op)

    def data() -> Any:
        return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(2)

    estimator = estimators.Estimator(model_fn, str(tmp_path))
    estimator.train(data, hooks=hooks)
    estimator.evaluate(data, hooks=hooks)
    assert len(list(estimator.predict(data, hooks=hooks))) == 2
    assert kinds == [CallableSession] * (1 + 3 * 2)


VALUES: list[Any] = [
    np.ones([2, 3], "float32"),
    np.arange(6, dtype="float32").reshape(3, 2).T,  # not contiguous
    np.ones([5, 3], "float64"),
    np.ones([0, 3], "int8"),
    [[1, 2, 3]],
    ((1.5, 2.5, 3.5),),
    np.ones([4, 6], "float32")[:, ::2],
]


def test_every_kind_of_value_gives_what_run_gives(graph: Any, calls: list[Any]) -> None:
    x = v1.placeholder(tf.float32, [None, 3], name="x")
    rate = v1.placeholder_with_default(1.0, [])
    count = v1.placeholder(tf.int64, [])
    flag = v1.placeholder(tf.bool, [])
    v = v1.get_variable("v", initializer=3.0)
    total = tf.reduce_sum(x, 0, name="sum") * rate
    fetches = {
        "pair": Pair("sum:0", [total, (v, total.op)]),
        "ordered": collections.OrderedDict(
            [("z", x + 1.0), ("a", tf.SparseTensor([[0, 1]], [5.0], [2, 2]))]
        ),
        "default": collections.defaultdict(
            list, {"more": tf.where(flag, count, -count), "text": tf.constant("a")}
        ),
        "op": tf.no_op(),
        "nothing": [],
    }
    with adopted() as session, v1.Session() as plain:
        for each in (session, plain):
            each.run(v.initializer)
        for number, value in enumerate(VALUES * 2):
            feeds = {"x:0": value, rate: 0.5, count: number, flag: number % 2 == 0}
            # It shows the types of containers and numbers too.
            ours, theirs = session.run(fetches, feeds), plain.run(fetches, feeds)
            assert repr(ours) == repr(theirs)
    assert len(calls) == 2 * len(VALUES) - 1


def test_mistakes_are_those_of_run(graph: Any, calls: list[Any]) -> None:
    x = v1.placeholder(tf.float32, [2], name="x")
    n = v1.placeholder(tf.int32, [])
    y = tf.identity(v1.verify_tensor_all_finite(x, "not finite", name="bad"))
    bad: list[tuple[Any, Any]] = [
        (y, {x: [1.0, 2.0, 3.0]}),
        (y, {x: "text"}),
        (y, {"other:0": 1.0}),
        (y, {x: tf.constant([1.0, 2.0])}),
        (y, {x: [np.nan, 1.0]}),
        (y, {x: None}),
        (n + 1, {n: 1.5}),
        (n + 1, {n: 2**40}),
        (n + 1, {n: np.float32(1.5)}),
    ]
    good = {id(y): {x: [1.0, 2.0]}}
    session = adopted()
    with v1.Session() as plain:
        for fetches, feeds in bad:
            for _ in range(2):  # the callable is there from the second run on
                session.run(fetches, good.get(id(fetches), {n: 1}))
            results: list[Any] = []
            for each in (plain, session):
                try:
                    results.append(("value", float(np.sum(each.run(fetches, feeds)))))
                except (ValueError, TypeError, tf.errors.OpError) as e:
                    op = getattr(e, "op", None)
                    results.append((type(e).__name__, str(e), op))
            assert results[0] == results[1], feeds
    session.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        session.run(y, {x: [1.0, 2.0]})
