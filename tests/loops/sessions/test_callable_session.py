"""Callable sessions give what `Session.run` gives; see also the recorded scenarios."""

from __future__ import annotations

import collections
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import structures
from hookbridge.loops.sessions import callable_session, fed_callable
from hookbridge.loops.sessions.callable_session import (
    CallableSession,
    CallableSessionHook,
)

v1: Any = tf.compat.v1


class FetchSet(callable_session._FetchSet):
    """Those of one test."""


@pytest.fixture
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fetches of each run through `make_callable`, in the order of the runs."""
    made: list[Any] = []
    original = v1.Session.make_callable

    def make_callable(self: Any, fetches: Any, *args: Any, **config: Any) -> Any:
        call = original(self, fetches, *args, **config)

        def counted() -> Any:
            made.append(fetches)
            return call()

        return counted

    monkeypatch.setattr(CallableSession, "make_callable", make_callable, raising=False)
    return made


def adopted(config: Any = None) -> Any:
    session = v1.Session(config=config)
    assert CallableSession.adopt(session)
    return session


def test_steps_go_through_a_callable_and_are_counted_right(
    graph: Any, calls: list[Any]
) -> None:
    step = v1.train.get_or_create_global_step()
    op = v1.assign_add(step, 1).op
    hook = v1.train.StopAtStepHook(last_step=6)
    turns = 0
    with hb.loops.training_session([hook], log_step_count_steps=0) as session:
        while not session.should_stop():
            session.run(op)
            turns += 1
    assert turns == 6
    assert len([c for c in calls if isinstance(c, dict)]) == 5


def test_any_containers_come_back_as_they_are(graph: Any, calls: list[Any]) -> None:
    Pair = collections.namedtuple("Pair", ["a", "b"])
    x, v = tf.constant([1, 2], name="x"), v1.get_variable("v", initializer=3.0)
    sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    fetches = {
        "pair": Pair("x:0", [x, (v, x.op)]),
        "ordered": collections.OrderedDict([("z", x), ("a", sparse)]),
        "default": collections.defaultdict(list, {"k": x}),
        "nothing": [],
    }
    with adopted() as session, v1.Session() as plain:
        for each in (session, plain):
            each.run(v.initializer)
        results = [session.run(fetches) for _ in range(3)]
        expected = plain.run(fetches)
    assert len(calls) == 2
    for result in results:
        assert repr(result) == repr(expected)


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
    x = tf.constant(1.0)
    trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    ragged = tf.RaggedTensor.from_row_splits(tf.constant([1, 2]), [0, 1, 2])
    with adopted() as session:
        for _ in range(3):
            metadata = v1.RunMetadata()
            session.run(x, options=trace, run_metadata=metadata)
            assert metadata.step_stats.dev_stats
            assert session.run(ragged).to_list() == [[1], [2]]
            assert session.run({"caller": []}) == {"caller": []}
        assert not calls
        assert [session.run(x, options=v1.RunOptions()) for _ in range(2)] == [1.0] * 2
        assert len(calls) == 1
        session.run(x, run_metadata=metadata)
    assert len(calls) == 2
    assert not metadata.ByteSize()


def test_errors_name_the_operation(graph: Any, calls: list[Any]) -> None:
    bad = v1.verify_tensor_all_finite(tf.constant(np.nan), "not finite", name="bad")
    with adopted() as session, v1.Session() as plain:
        raised = []
        for each in (plain, session, session):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                each.run(bad)
            raised.append(caught.value)
    assert len(calls) == 1
    assert raised[2].op is raised[0].op is not None
    assert raised[2].message == raised[0].message


def test_nothing_piles_up(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "MOST", 4)
    monkeypatch.setattr(callable_session, "_FetchSet", FetchSet)
    x = tf.constant(1.0)
    with adopted() as session:
        for i in range(20):
            session.run({str(i): x}), session.run({str(i): x}, {x: 2.0})
        gc.collect()
        assert sum(type(o) is FetchSet for o in gc.get_objects()) == 8
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None


def test_sessions_that_would_change_are_left_alone(graph: Any) -> None:
    class Own(tf.compat.v1.Session):  # type: ignore[misc]
        pass

    cost = v1.ConfigProto(graph_options=v1.GraphOptions(build_cost_model=1))
    named = v1.ConfigProto()
    named.experimental.session_metadata.name = "named"
    for session in (Own(), v1.Session(config=cost), v1.Session(config=named)):
        before = type(session)
        CallableSessionHook().after_create_session(session, None)
        assert type(session) is before
        session.close()


def test_recovered_session_is_adopted_too(graph: Any) -> None:
    step = v1.train.get_or_create_global_step()
    op = v1.assign_add(step, 1).op
    seen = []

    class Failing(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> None:
            seen.append(run_context.session)
            if len(seen) == 3:
                raise tf.errors.AbortedError(None, None, "lost")

    with hb.loops.training_session([Failing()], log_step_count_steps=0) as session:
        for _ in range(4):
            session.run(op)
    assert len(set(map(id, seen))) == 2
    assert {type(s) for s in seen} == {CallableSession}


# --- steps with feeds -------------------------------------------------------------


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arrays of each run that went through a callable."""
    made: list[Any] = []
    original = fed_callable.FedCallable.run

    def run(self: Any, arrays: list[Any]) -> Any:
        made.append(arrays)
        return original(self, arrays)

    monkeypatch.setattr(fed_callable.FedCallable, "run", run)
    return made


VALUES: list[Any] = [
    np.ones([2, 3], "float32"),
    np.arange(6, dtype="float32").reshape(3, 2).T,  # not contiguous
    np.ones([5, 3], "float64"),
    np.ones([0, 3], "int8"),
    [[1, 2, 3]],
    ((1.5, 2.5, 3.5),),
    np.ones([4, 6], "float32")[:, ::2],
]


def test_every_kind_of_value_gives_what_run_gives(graph: Any, fast: list[Any]) -> None:
    x = v1.placeholder(tf.float32, [None, 3])
    rate = v1.placeholder_with_default(1.0, [])
    count = v1.placeholder(tf.int64, [])
    flag = v1.placeholder(tf.bool, [])
    fetches = {
        "sum": tf.reduce_sum(x, 0) * rate,
        "more": (x + 1.0, [tf.where(flag, count, -count)]),
        "op": tf.no_op(),
    }
    with adopted() as session, v1.Session() as plain:
        for number, value in enumerate(VALUES * 2):
            feeds = {x: value, rate: 0.5, count: number, flag: number % 2 == 0}
            ours, theirs = session.run(fetches, feeds), plain.run(fetches, feeds)
            tf.nest.assert_same_structure(ours, theirs)
            for a, b in zip(
                tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True
            ):
                np.testing.assert_array_equal(a, b)
                assert type(a) is type(b)
                assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
    assert len(fast) == 2 * len(VALUES) - 1


def test_mistakes_are_those_of_run(graph: Any) -> None:
    x = v1.placeholder(tf.float32, [2], name="x")
    n = v1.placeholder(tf.int32, [])
    y = tf.identity(v1.verify_tensor_all_finite(x, "not finite", name="bad"))
    bad: list[tuple[Any, Any]] = [
        (y, {x: [1.0, 2.0, 3.0]}),
        (y, {x: "text"}),
        (y, {x: tf.constant([1.0, 2.0])}),
        (y, {x: [np.nan, 1.0]}),
        (y, {x: None}),
        (n + 1, {n: 1.5}),
        (n + 1, {n: 2**40}),
        (n + 1, {n: np.float32(1.5)}),
    ]
    good = {id(y): {x: [1.0, 2.0]}}
    with adopted() as session, v1.Session() as plain:
        for fetches, feeds in bad:
            for _ in range(2):  # the callable is there from the second run on
                session.run(fetches, good.get(id(fetches), {n: 1}))
            results: list[Any] = []
            for each in (plain, session):
                try:
                    results.append(("value", float(np.sum(each.run(fetches, feeds)))))
                except (ValueError, TypeError, tf.errors.OpError) as e:
                    results.append((type(e).__name__, str(e)))
            assert results[0] == results[1], feeds


def test_what_is_fed_and_fetched_and_what_is_no_number(
    graph: Any, fast: list[Any]
) -> None:
    x = v1.placeholder_with_default(1.0, [], name="x")
    text = v1.placeholder(tf.string, [])
    sparse = v1.sparse_placeholder(tf.float32, [2])
    value = v1.SparseTensorValue([[0]], [2.0], [2])
    with adopted() as session:
        for _ in range(3):
            assert session.run([x, x + 1.0], {x: 5.0}) == [5.0, 6.0]
            assert session.run(x + 1.0, {"x:0": 2.0}) == 3.0
            assert session.run(tf.strings.length(text), {text: "abc"}) == 3
            dense = session.run(v1.sparse_tensor_to_dense(sparse), {sparse: value})
            assert dense.tolist() == [2.0, 0.0]
    assert not fast


def test_hooks_of_a_fed_loop_see_everything(graph: Any, fast: list[Any]) -> None:
    """Feeds of user and hook are merged, and clashes raise."""
    x = v1.placeholder(tf.float32, [], name="x")
    rate = v1.placeholder_with_default(0.0, [], name="learning_rate")
    step = v1.train.get_or_create_global_step()
    train = v1.assign_add(step, 1).op
    product = x * rate
    seen: list[Any] = []

    class Rate(v1.train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> Any:
            seen.append(run_context.original_args.feed_dict)
            return v1.train.SessionRunArgs([product, step], {rate: len(seen)})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            seen[-1] = (seen[-1], float(run_values.results[0]))

    stop = v1.train.StopAtStepHook(last_step=4)
    with hb.loops.training_session([Rate(), stop], log_step_count_steps=0) as session:
        turn = 0
        while not session.should_stop():
            session.run(train, {x: float(turn)})
            turn += 1
    assert seen == [({x: float(n)}, n * (n + 1.0)) for n in range(4)]
    assert len(fast) == 3
    with (
        hb.loops.training_session([Rate()], log_step_count_steps=0) as session,
        pytest.raises(RuntimeError, match="fed by a SessionRunHook and user"),
    ):
        session.run(train, {x: 1.0, rate: 2.0})


def test_a_rate_that_a_callback_sets_is_fed_fast(graph: Any, fast: list[Any]) -> None:
    weight = v1.get_variable("weight", initializer=1.0)
    loss = tf.square(weight, name="loss")
    rate = tf.identity(tf.constant(0.1), name="learning_rate")
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(rate).minimize(loss, step)
    scheduler = tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.05)
    hooks = hb.as_hooks(scheduler, steps_per_epoch=4, epochs=1)
    with hb.loops.training_session(hooks, log_step_count_steps=0) as session:
        while not session.should_stop():
            session.run(train)
    assert len(fast) == 3  # all but the first run
    assert {float(value) for arrays in fast for value in arrays} == {np.float32(0.05)}


def test_error_of_a_fed_step_names_the_operation(graph: Any, fast: list[Any]) -> None:
    x = v1.placeholder(tf.float32, [])
    y = v1.verify_tensor_all_finite(x, "not finite", name="bad")
    session = adopted()
    session.run(y, {x: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="not finite") as e:
        session.run(y, {x: np.nan})
    assert fast and e.value.op is not None
    session.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        session.run(y, {x: 1.0})
