"""Weights move between session and callback only when they are used, and once."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of, noting
from keras_graph import keras_graph_loop

from hookbridge import errors
from hookbridge.adapters.live_model import mirrors as mirrors_module
from hookbridge.adapters.live_model.mirrors import Mirrors
from hookbridge.adapters.session_graph import session_variables
from hookbridge.ground import compat

v1 = tf.compat.v1


class Moves:
    """How many variables each read and each write of a session had."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[int] = []
        self.written: list[int] = []
        for name, log in (("read", self.read), ("write", self.written)):
            move = functools.partial(self._move, getattr(session_variables, name), log)
            monkeypatch.setattr(session_variables, name, move)

    @staticmethod
    def _move(move: Any, log: list[int], session: Any, items: Any) -> Any:
        items = list(items)
        log.extend([len(items)] if items else [])
        return move(session, items)


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> Moves:
    return Moves(monkeypatch)


class Weights:
    """Four variables of a session, and their mirrors."""

    def __init__(self) -> None:
        with tf.Graph().as_default():
            starts = [np.full([3, 2], i, "float32") for i in range(4)]
            self.variables = [
                v1.get_variable(f"w{i}", initializer=start)
                for i, start in enumerate(starts)
            ]
            self.steps = [v.assign_add(np.full([3, 2], 10.0)) for v in self.variables]
            init = v1.global_variables_initializer()
            self.session: Any = v1.Session()
        self.session.run(init)
        self.mirrors = Mirrors(lambda: self.session)
        self.kept = self.mirrors.hand_out(self.variables)

    def values(self) -> list[Any]:
        return list(self.session.run(self.variables))

    @contextlib.contextmanager
    def event(self) -> Iterator[Any]:
        self.mirrors.begin_event()
        yield self.kept
        self.mirrors.push()
        self.mirrors.end_event()


@pytest.fixture
def weights() -> Iterator[Weights]:
    made = Weights()
    with compat.private("eager_mode")():
        yield made
    made.session.close()


NEW = np.full([3, 2], 7, "float32")
ROW = NEW[:1]


@tf.function  # type: ignore[untyped-decorator]
def _compiled(variable: Any) -> None:
    variable.assign(NEW)


# Each way to change a variable.
ASSIGNMENTS: dict[str, Callable[[Any], Any]] = {
    "assign": lambda v: v.assign(NEW),
    "assign_add": lambda v: v.assign_add(NEW),
    "assign_sub": lambda v: v.assign_sub(NEW),
    "scatter_update": lambda v: v.scatter_update(tf.IndexedSlices(ROW, [1])),
    "scatter_nd_add": lambda v: v.scatter_nd_add([[1]], ROW),
    "slice": lambda v: v[1].assign(ROW[0]),
    "slice after a sparse read": lambda v: (tf.gather(v, [0]), v[1].assign(ROW[0])),
    "twice in place": lambda v: (v.scatter_nd_add([[0]], ROW), v[1].assign(ROW[0])),
    "raw op": lambda v: tf.raw_ops.AssignVariableOp(
        resource=v.handle, value=tf.constant(NEW)
    ),
    "optimizer": lambda v: tf.raw_ops.ResourceApplyGradientDescent(
        var=v.handle, alpha=1.0, delta=NEW
    ),
    "compiled": _compiled,
}
READS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda v: v.numpy(),
    "value": lambda v: v + 1,
    "gather": lambda v: tf.gather(v, [0]),
    "assign of the same": lambda v: v.assign(v.numpy()),
}


@pytest.mark.parametrize("way", ASSIGNMENTS)
def test_every_assignment_is_seen(weights: Weights, moves: Moves, way: str) -> None:
    with weights.event() as kept:
        ASSIGNMENTS[way](kept[2])
        expected = kept[2].numpy()
    assert moves.written == [1]
    found = weights.values()
    np.testing.assert_array_equal(found[2], expected)
    assert not np.array_equal(found[2], np.full([3, 2], 2))
    np.testing.assert_array_equal(found[1], np.full([3, 2], 1))


@pytest.mark.parametrize("way", READS)
def test_no_read_is_written_back(weights: Weights, moves: Moves, way: str) -> None:
    with weights.event() as kept:
        READS[way](kept[2])
    assert moves.written == []
    assert moves.read == [1]


def test_what_an_event_uses_is_read_in_one_run(
    subtests: pytest.Subtests, weights: Weights, moves: Moves
) -> None:
    for used, reads in (
        ([0], [1]),
        ([0], [1]),
        ([0, 1, 2, 3], [1, 3]),  # one that was not expected brings the rest
        ([0, 1, 2, 3], [4]),
        ([], []),
        ([3], [4]),
        ([3, 3], [1]),
    ):
        with subtests.test(str(used)):
            moves.read.clear()
            with weights.event() as kept:
                for index in used:
                    kept[index].numpy()
            assert moves.read == reads


def test_value_between_events_and_after_the_run(weights: Weights) -> None:
    with weights.event() as kept:
        assert kept[1].numpy()[0, 0] == 1
    weights.session.run(weights.steps)
    assert kept[1].numpy()[0, 0] == 11
    weights.session.run(weights.variables[0].initializer)
    assert kept[0].numpy()[0, 0] == 0
    weights.mirrors.begin_event()
    weights.mirrors.end_run()
    weights.mirrors.end_event()
    weights.session.close()
    assert [v.numpy()[0, 0] for v in kept] == [0, 11, 12, 13]
    kept[3].assign(NEW)
    assert kept[3].numpy()[0, 0] == 7


def test_session_that_was_closed_by_an_error(weights: Weights) -> None:
    with weights.event() as kept:
        kept[1].numpy()
    weights.session.close()
    assert kept[1].numpy()[0, 0] == 1  # the last value that was seen
    kept[1].assign(NEW)
    assert kept[1].numpy()[0, 0] == 7
    with pytest.raises(errors.LiveModelError, match="`w0` was used after its session"):
        kept[0].numpy()


def test_save_reads_the_session_once(keras2: Any, moves: Moves, tmp_path: Path) -> None:
    """Each save reads all weights in one run; no other event reads or writes any."""

    def events() -> Any:
        return noting(keras2, lambda *_: None, ("on_train_batch_end", "on_epoch_end"))

    savers = [
        keras2.callbacks.ModelCheckpoint(str(tmp_path / name), save_weights_only=True)
        for name in ("{epoch}.h5", "{epoch}.weights.h5", "{epoch}.ckpt")
    ]
    keras_graph_loop(keras2, [events(), *savers, events()], epochs=3)
    assert moves.read == [8] * 9
    assert moves.written == []


def test_save_of_a_big_model_holds_one_layer_at_a_time(
    keras2: Any, moves: Moves, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held: list[weakref.ref[Any]] = []
    read = session_variables.read

    def watched_read(session: Any, variables: Any) -> list[Any]:
        # At most the other weights of a batch normalization.
        assert sum(array() is not None for array in held) <= 3
        values = read(session, variables)
        held.extend(weakref.ref(value) for value in values)
        return values

    monkeypatch.setattr(mirrors_module, "_MOST_BYTES", 1)
    monkeypatch.setattr(session_variables, "read", watched_read)
    path = str(tmp_path / "w.h5")
    saver = keras2.callbacks.ModelCheckpoint(path, save_weights_only=True)
    keras_graph_loop(keras2, [saver], epochs=1)
    assert moves.read == [1] * 8


def test_load_is_one_read_and_one_write(
    keras2: Any, moves: Moves, tmp_path: Path
) -> None:
    path = str(tmp_path / "w.h5")

    def load(self: Any, epoch: int, logs: Any) -> None:
        if epoch == 0:
            self.model.save_weights(path)
            self.saved = self.model.get_weights()
            moves.read.clear()
            return
        self.model.load_weights(path)
        reads.append(list(moves.read))
        kernel = self.model.get_layer("hidden").weights[0]
        np.testing.assert_array_equal(kernel.numpy(), self.saved[0])
        np.testing.assert_equal(self.model.get_weights(), self.saved)

    reads: list[list[int]] = []
    keras_graph_loop(keras2, [callback_of(keras2, on_epoch_end=load)], epochs=2)
    assert reads == [[8]]
    assert moves.written == [8]
