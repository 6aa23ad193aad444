"""Callable sessions, apart from the recorded scenarios of the loop's events."""

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
from hookbridge.loops.sessions import callable_session
from hookbridge.loops.sessions.callable_session import (
    CallableSession,
    CallableSessionHook,
)

v1 = tf.compat.v1


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


def test_other_elements_in_the_same_dict_are_other_fetches(
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


def test_fetching_nothing_is_no_error(graph: Any, calls: list[Any]) -> None:
    tf.constant(1)
    with adopted() as session:
        assert [session.run({"caller": []}) for _ in range(3)] == [{"caller": []}] * 3
    assert not calls


def test_options_and_unusual_fetches_stay_ordinary(
    graph: Any, calls: list[Any]
) -> None:
    x = tf.constant(1.0)
    trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    ragged = tf.RaggedTensor.from_row_splits(tf.constant([1, 2]), [0, 1, 2])
    with adopted() as session:
        for _ in range(2):
            metadata = v1.RunMetadata()
            session.run(x, options=trace, run_metadata=metadata)
            assert metadata.step_stats.dev_stats
            assert session.run(ragged).to_list() == [[1], [2]]
        assert not calls
        assert [session.run(x, options=v1.RunOptions()) for _ in range(2)] == [1.0] * 2
    assert len(calls) == 1


def test_metadata_of_a_plain_run_is_emptied(graph: Any, calls: list[Any]) -> None:
    x = tf.constant(1.0)
    trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with adopted() as session:
        session.run(x)
        metadata = v1.RunMetadata()
        session.run(x, options=trace, run_metadata=metadata)
        session.run(x, run_metadata=metadata)
    assert len(calls) == 1
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


def test_new_ops_are_found(graph: Any) -> None:
    x = tf.constant(1.0)
    with adopted() as session:
        for _ in range(2):
            session.run(x)
        for i in range(3):
            y = x + float(i)
            assert [session.run([y]) for _ in range(2)] == [[1.0 + i]] * 2


def test_fetch_sets_do_not_pile_up(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "MOST", 4)
    monkeypatch.setattr(callable_session, "_FetchSet", FetchSet)
    x = tf.constant(1.0)
    with adopted() as session:
        for i in range(20):
            session.run({str(i): x}), session.run({str(i): x}, {x: 2.0})
        gc.collect()
        assert sum(type(o) is FetchSet for o in gc.get_objects()) == 8


def test_session_that_is_dropped_is_freed(graph: Any) -> None:
    x = tf.constant(1.0)
    session = adopted()
    session.run(x), session.run(x)
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
