"""Properties that hold for values, graphs and runs that nobody chose."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.session_graph.steps import steps_of
from hookbridge.adapters.state import codec
from hookbridge.contrib.areas.hparams import HParams
from hookbridge.ground import structures
from hookbridge.ground.processes import cluster_checks
from hookbridge.testing import (
    EventLog,
    RecordingCallback,
    RecordingHook,
    assert_conforms,
)

v1 = tf.compat.v1
SETTINGS = hypothesis.settings(
    derandomize=True, max_examples=60, deadline=None, database=None
)
FEW = hypothesis.settings(SETTINGS, max_examples=12)
given = hypothesis.given

NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False)
PLAIN = st.none() | st.booleans() | st.text(max_size=5) | NUMBERS
ARRAYS = st.builds(
    lambda values, dtype: np.asarray(values).astype(dtype),
    st.lists(st.integers(0, 9), max_size=4),
    st.sampled_from(
        ["float32", "int8", "bool", "complex64", tf.bfloat16.as_numpy_dtype]
    ),
)
KEYS = st.text(max_size=4) | st.integers(0, 9) | st.tuples(st.integers(0, 3))


def _containers(inner: Any) -> Any:
    dicts = st.dictionaries(KEYS, inner, max_size=3)
    return (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | dicts
        | dicts.map(OrderedDict)
        | dicts.map(lambda found: defaultdict(list, found))
        | st.dictionaries(KEYS, st.integers(0, 9), max_size=3).map(Counter)
    )


@hypothesis.settings(SETTINGS, max_examples=30)
@given(st.recursive(PLAIN | ARRAYS, _containers, max_leaves=12))
def test_state_is_read_back_as_it_was(value: Any) -> None:
    arrays: dict[str, Any] = {}
    written = json.loads(json.dumps(codec.encode([value], arrays)))
    (read,) = codec.decode(written, arrays)
    _assert_same(read, value)


def _assert_same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    elif isinstance(theirs, dict):
        factories = [getattr(each, "default_factory", 0) for each in (ours, theirs)]
        assert factories[0] is factories[1]
        _assert_same(list(ours), list(theirs))
        _assert_same(list(ours.values()), list(theirs.values()))
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            _assert_same(mine, other)
    else:
        assert ours == theirs


@SETTINGS
@given(
    st.recursive(
        st.sampled_from("abcd"),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_a_copy_of_a_structure_has_its_key(structure: Any) -> None:
    copied = structures.copy_structure(structure)
    assert copied == structure
    assert structures.structure_key(copied) == structures.structure_key(structure)
    other = structures.structure_key([structure, "a"])
    assert other != structures.structure_key(structure)


def test_what_is_used_stays_and_the_rest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "MOST", 4)
    known = structures.RecentlyUsed()
    known.add("hot", 1)
    for i in range(100):
        known.add(i, str(i))
        assert known.get("hot") == 1
    found = [i for i in range(100) if known.get(i) is not None]
    assert found[-3:] == [97, 98, 99] and len(found) < 2 * structures.MOST


HPARAMS = st.dictionaries(
    st.sampled_from(["rate", "units", "name", "layers", "on"]),
    st.booleans()
    | st.integers(-99, 99)
    | st.floats(-1e6, 1e6)
    | st.text("abc._-", min_size=1, max_size=6)
    | st.lists(st.integers(0, 9), min_size=1, max_size=3),
)


@SETTINGS
@given(HPARAMS)
def test_hparams_are_those_of_their_json(values: dict[str, Any]) -> None:
    first = HParams(**values)
    again = HParams(**values).parse_json(first.to_json())
    assert again.values() == first.values() == values
    texts = {
        name: f"[{','.join(map(str, value))}]" if isinstance(value, list) else value
        for name, value in values.items()
    }
    line = ",".join(f"{name}={value}" for name, value in texts.items())
    assert HParams(**values).parse(line).values() == values


ADDRESSES = st.sampled_from(["h:1", "h:2", "h:65535", "[::1]:80", "h:0", "h", "", 5])


@SETTINGS
@given(
    st.dictionaries(
        st.sampled_from(["chief", "master", "worker", "ps", "evaluator", "cook"]),
        st.lists(ADDRESSES, max_size=3) | st.none() | st.text(max_size=3),
    )
    | PLAIN
)
def test_a_cluster_is_good_or_refused_by_name(value: Any) -> None:
    try:
        cluster = cluster_checks.check_cluster(value)
    except errors.InvalidArgumentError as e:
        assert "TF_CONFIG['cluster']" in str(e) and "expected" in str(e)
        return
    addresses = [address for hosts in cluster.values() for address in hosts]
    assert len(set(addresses)) == len(addresses) > 0
    assert {job: tuple(hosts) for job, hosts in value.items()} == cluster
    assert v1.train.ClusterSpec({job: [*hosts] for job, hosts in cluster.items()})


@FEW
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("+d0")), max_size=8))
def test_a_run_is_a_step_if_the_global_step_moves(nodes: list[tuple[int, str]]) -> None:
    """Random graphs of additions, control dependencies and moves of the global step."""
    with tf.Graph().as_default() as graph:
        counter = v1.train.get_or_create_global_step()
        made = [tf.constant(0, tf.int64)]
        for before, kind in nodes:
            source = made[before % len(made)]
            with graph.control_dependencies([source.op]):
                if kind == "+":
                    made.append(v1.assign_add(counter, 1))
                elif kind == "d":
                    made.append(tf.identity(tf.constant(1, tf.int64)))
                else:
                    made.append(source + 1)
        steps = steps_of(graph)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for tensor in made:
                before_run = session.run(counter)
                session.run(tensor)
                moved = session.run(counter) > before_run
                is_step = steps is not None and steps.kind_of(tensor).step is not None
                assert is_step == moved


class Fetches(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Fetches a structure, and feeds a placeholder if it is told to."""

    def __init__(self, fetches: Any, feed: dict[Any, Any]) -> None:
        self.args = v1.train.SessionRunArgs(fetches, feed)
        self.seen: list[Any] = []

    def before_run(self, run_context: Any) -> Any:
        return self.args

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(run_values.results)


WANTED = st.recursive(
    st.sampled_from(["a", "b", "sum", "step"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
    ),
    max_leaves=4,
)


@FEW
@given(st.lists(WANTED, min_size=1, max_size=4), st.sets(st.sampled_from("ab")))
def test_merged_fetches_and_feeds_are_those_of_tensorflow(
    wanted: list[Any], fed: set[str]
) -> None:
    def run(make: Any) -> list[Any]:
        with tf.Graph().as_default():
            step = v1.train.get_or_create_global_step()
            tensors = {n: v1.placeholder_with_default(1.0, [], n) for n in "ab"}
            tensors["sum"] = tensors["a"] + 2 * tensors["b"]
            tensors["step"] = v1.assign_add(step, 1)

            def real(structure: Any) -> Any:
                return tf.nest.map_structure(tensors.__getitem__, structure)

            feeds = [{tensors[name]: 5.0} for name in sorted(fed)]
            hooks = [
                Fetches(real(one), feeds[i] if i < len(feeds) else {})
                for i, one in enumerate(wanted)
            ]
            with make(hooks=hooks) as session:
                results = [session.run(tensors["step"]) for _ in range(3)]
            return [results, *(hook.seen for hook in hooks)]

    assert run(hb.loops.training_session) == run(v1.train.MonitoredTrainingSession)


@FEW
@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 4))
def test_events_of_a_session_are_those_of_the_lifecycle(
    last: int, steps_per_epoch: int, first: int
) -> None:
    log = EventLog()
    guests: tuple[Any, ...] = (
        RecordingHook(log, "hook"),
        RecordingCallback(log, "callback"),
    )
    steps = max(last, first + 1)
    with tf.Graph().as_default():
        step = v1.get_variable(
            "global_step", (), tf.int64, v1.constant_initializer(first), trainable=False
        )
        v1.add_to_collection(v1.GraphKeys.GLOBAL_STEP, step)
        train_op = v1.assign_add(step, 1)
        stop = v1.train.StopAtStepHook(last_step=steps)
        hooks = hb.as_hooks([stop, *guests], steps_per_epoch=steps_per_epoch)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train_op)
    facts = {"steps_per_epoch": steps_per_epoch, "first_step": first}
    facts["steps"] = steps - first
    for guest in ("hook", "callback"):
        assert_conforms(log, guest, guest=guest, host="session", **facts)


class EpochEvents(tf.keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Notes the epochs, their logs and the global step that each of them sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.seen.append((epoch, int(self.model.optimizer.iterations.numpy())))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs = {name: float(value) for name, value in logs.items()}
        self.seen.append((epoch, int(self.model.optimizer.iterations.numpy()), logs))


class BatchEvents(tf.keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Wants the batches, so that no step of its run is only counted."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Does nothing, and is called."""


RUNS = st.sampled_from(["step"] * 6 + ["other", "look", "update", "below", "fails"])


@FEW
@given(st.lists(RUNS, min_size=3, max_size=14), st.integers(1, 5))
def test_steps_that_are_only_counted_are_those_that_are_read(
    runs: list[str], steps_per_epoch: int
) -> None:
    """Random runs of a session: two kinds of steps, others, below it, and failing."""

    def epochs(*others: Any) -> list[Any]:
        events = EpochEvents()
        with tf.Graph().as_default():
            counter = v1.train.get_or_create_global_step()
            x = v1.placeholder_with_default(1.0, [], "x")
            w = v1.get_variable("w", [], initializer=v1.zeros_initializer())
            loss = tf.square(w - v1.debugging.check_numerics(x, "x"))
            optimizer = v1.train.GradientDescentOptimizer(0.1)
            train_op = optimizer.minimize(loss, counter)
            update = optimizer.minimize(loss)
            fetches = {
                "step": train_op,
                "other": [train_op, update],
                "look": loss,
                "update": update,
            }
            hooks = hb.as_hooks(
                [events, *others], steps_per_epoch=steps_per_epoch, logs={"loss": loss}
            )
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                for number, kind in enumerate(runs):
                    feeds = {x: float(number)}
                    if kind == "below":
                        session.run_step_fn(
                            lambda step_context: step_context.session.run(train_op)
                        )
                    elif kind == "fails":
                        with pytest.raises(tf.errors.InvalidArgumentError):
                            session.run(train_op, {x: np.nan})
                    else:
                        session.run(fetches[kind], feeds)
        return events.seen

    assert epochs() == epochs(BatchEvents())
