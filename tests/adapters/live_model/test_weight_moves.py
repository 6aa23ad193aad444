"""Weights move between session and callback only when they are used, and once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras_graph import keras_graph_loop

from hookbridge import compat, errors
from hookbridge.adapters.live_model import clone as clone_module
from hookbridge.adapters.live_model import mirrors as mirrors_module
from hookbridge.adapters.live_model.mirror import Mirror, eager_variable
from hookbridge.adapters.live_model.mirrors import Mirrors
from hookbridge.adapters.session_graph import variables as session_variables

v1 = tf.compat.v1


class Moves:
    """How many variables each read and each write of a session had."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[int] = []
        self.written: list[int] = []
        read, write = session_variables.read, session_variables.write

        def counted_read(session: Any, variables: Any) -> list[Any]:
            self.read += [len(variables)] if variables else []
            return read(session, variables)

        def counted_write(session: Any, pairs: Any) -> None:
            pairs = list(pairs)
            self.written += [len(pairs)] if pairs else []
            write(session, pairs)

        monkeypatch.setattr(session_variables, "read", counted_read)
        monkeypatch.setattr(session_variables, "write", counted_write)


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> Moves:
    return Moves(monkeypatch)


class Weights:
    """Four variables of a session, and their mirrors."""

    def __init__(self) -> None:
        with tf.Graph().as_default():
            self.variables = [
                v1.get_variable(f"w{i}", initializer=np.full([3, 2], i, "float32"))
                for i in range(4)
            ]
            self.steps = [
                v.assign(np.full([3, 2], 10 + i, "float32"))
                for i, v in enumerate(self.variables)
            ]
            init = v1.global_variables_initializer()
            self.session: Any = v1.Session()
        self.session.run(init)
        self.mirrors = Mirrors(lambda: self.session)

    def values(self) -> list[Any]:
        return list(self.session.run(self.variables))


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
    mirrors = weights.mirrors
    kept = mirrors.of(weights.variables)
    mirrors.begin_event(of_batch=False)
    ASSIGNMENTS[way](kept[2])
    expected = kept[2].numpy()
    mirrors.push()
    mirrors.end_event()
    assert moves.written == [1]
    found = weights.values()
    np.testing.assert_array_equal(found[2], expected)
    assert not np.array_equal(found[2], np.full([3, 2], 2))
    np.testing.assert_array_equal(found[1], np.full([3, 2], 1))


@pytest.mark.parametrize("way", READS)
def test_no_read_is_written_back(weights: Weights, moves: Moves, way: str) -> None:
    mirrors = weights.mirrors
    kept = mirrors.of(weights.variables)
    mirrors.begin_event(of_batch=True)
    READS[way](kept[2])
    mirrors.push()
    mirrors.end_event()
    assert moves.written == []
    assert moves.read == [1]


def test_values_are_not_compared(
    weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[Any] = []
    monkeypatch.setattr(np, "array_equal", lambda *args, **_: compared.append(args))
    kept = weights.mirrors.of(weights.variables)
    for of_batch in (False, True):
        weights.mirrors.begin_event(of_batch=of_batch)
        for variable in kept:
            variable.numpy()
        weights.mirrors.push()
        weights.mirrors.end_event()
    assert not compared


def test_what_an_event_uses_is_read_in_one_run(weights: Weights, moves: Moves) -> None:
    kept = weights.mirrors.of(weights.variables)
    for used, reads in (
        ([0], [1]),
        ([0], [1]),
        ([0, 1, 2, 3], [1, 1, 2]),  # the second unexpected one brings the rest
        ([0, 1, 2, 3], [4]),
        ([], []),
        ([3], [4]),
        ([3, 3], [1]),
    ):
        moves.read.clear()
        weights.mirrors.begin_event(of_batch=False)
        for index in used:
            kept[index].numpy()
        weights.mirrors.push()
        weights.mirrors.end_event()
        assert moves.read == reads


def test_events_of_batches_expect_what_batches_use(
    weights: Weights, moves: Moves
) -> None:
    kept = weights.mirrors.of(weights.variables)
    for _ in range(3):
        for of_batch, used in ((True, kept[:1]), (False, kept)):
            weights.mirrors.begin_event(of_batch=of_batch)
            for variable in used:
                variable.numpy()
            weights.mirrors.end_event()
    assert moves.read == [1, 1, 3, 1, 4, 1, 4]


def test_value_between_events_and_after_the_run(weights: Weights) -> None:
    kept = weights.mirrors.of(weights.variables)
    weights.mirrors.begin_event(of_batch=False)
    assert kept[1].numpy()[0, 0] == 1
    weights.mirrors.end_event()
    weights.session.run(weights.steps)
    assert kept[1].numpy()[0, 0] == 11
    weights.session.run(weights.variables[0].initializer)
    assert kept[0].numpy()[0, 0] == 0
    weights.mirrors.begin_event(of_batch=False)
    weights.mirrors.end_run()
    weights.mirrors.end_event()
    weights.session.close()
    assert [v.numpy()[0, 0] for v in kept] == [0, 11, 12, 13]
    kept[3].assign(NEW)
    assert kept[3].numpy()[0, 0] == 7


def test_assignments_between_events(weights: Weights, moves: Moves) -> None:
    kept = weights.mirrors.of(weights.variables)
    kept[0].assign(NEW)
    assert kept[0].numpy()[0, 0] == 7
    assert moves.written == [1]
    kept[1].assign_add(NEW)
    kept[2].numpy()
    weights.mirrors.begin_event(of_batch=True)
    assert moves.written == [1, 1]
    assert [v[0, 0] for v in weights.values()] == [7, 8, 2, 3]
    kept[3].assign(NEW)
    weights.mirrors.end_event()  # without `push`: a callback failed
    weights.mirrors.begin_event(of_batch=True)
    assert moves.written == [1, 1]


def test_session_that_was_closed_by_an_error(weights: Weights) -> None:
    kept = weights.mirrors.of(weights.variables)
    weights.mirrors.begin_event(of_batch=False)
    kept[1].numpy()
    weights.mirrors.end_event()
    weights.session.close()
    assert kept[1].numpy()[0, 0] == 1  # the last value that was seen
    kept[1].assign(NEW)
    assert kept[1].numpy()[0, 0] == 7
    with pytest.raises(errors.LiveModelError, match="`w0` was used after its session"):
        kept[0].numpy()


def test_mirrors_take_no_memory_before_they_are_used(weights: Weights) -> None:
    kept = weights.mirrors.of(weights.variables)

    def size(variable: Any) -> int:
        handle = compat.variable_handle(variable)
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=variable.dtype)
        return int(tf.size(value))

    weights.mirrors.begin_event(of_batch=False)
    kept[0].numpy()
    assert [size(v) for v in kept] == [6, 0, 0, 0]
    assert [tuple(v.shape) for v in kept] == [(3, 2)] * 4
    weights.mirrors.end_event()


def test_a_mirror_may_be_held_for_longer_than_its_owner(graph: Any) -> None:
    class Gone:
        def about_to_use(self, mirror: Mirror) -> None:
            raise AssertionError("it does not live")

        give_away = take_over = about_to_use

    variable = tf.compat.v1.get_variable("v", initializer=1.0)
    owner: Any = Gone()
    eager = eager_variable(0.0, "v")
    with compat.private("eager_mode")():
        mirror = Mirror(variable, eager, owner)
        mirror.set(2.0)
        del owner
        assert eager.numpy() == 2.0
        eager.assign(3.0)
        assert eager.read_value().numpy() == 3.0


def test_save_reads_the_session_once(keras2: Any, moves: Moves, tmp_path: Path) -> None:
    """Each save reads all weights in one run; no other event reads or writes any."""

    class Events(keras2.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            pass

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            pass

    for name in ("{epoch}.h5", "{epoch}.weights.h5", "{epoch}.ckpt"):
        moves.read.clear()
        saver = keras2.callbacks.ModelCheckpoint(
            str(tmp_path / name), save_weights_only=True
        )
        keras_graph_loop(keras2, [Events(), saver, Events()], epochs=3)
        assert moves.read == [8, 8, 8], name
    assert moves.written == []


def test_save_of_a_big_model_holds_one_layer_at_a_time(
    keras2: Any, moves: Moves, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held: list[weakref.ref[Any]] = []
    most: list[int] = []
    read = session_variables.read

    def watched_read(session: Any, variables: Any) -> list[Any]:
        most.append(sum(array() is not None for array in held))
        values = read(session, variables)
        held.extend(weakref.ref(value) for value in values)
        return values

    monkeypatch.setattr(mirrors_module, "_MOST_BYTES", 1)
    monkeypatch.setattr(session_variables, "read", watched_read)
    saver = keras2.callbacks.ModelCheckpoint(
        str(tmp_path / "w.h5"), save_weights_only=True
    )
    keras_graph_loop(keras2, [saver], epochs=1)
    assert moves.read == [1] * 8
    assert max(most) <= 3  # the other weights of a batch normalization


def test_load_is_one_write_and_no_read(
    keras2: Any, moves: Moves, tmp_path: Path
) -> None:
    path = str(tmp_path / "w.h5")

    class Loads(keras2.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 0:
                self.model.save_weights(path)
                self.saved = self.model.get_weights()
                moves.read.clear()
                return
            self.model.load_weights(path)
            reads.append(list(moves.read))
            kernel = self.model.get_layer("hidden").weights[0]
            np.testing.assert_array_equal(kernel.numpy(), self.saved[0])
            for found, saved in zip(self.model.get_weights(), self.saved, strict=True):
                np.testing.assert_array_equal(found, saved)

    reads: list[list[int]] = []
    keras_graph_loop(keras2, [Loads()], epochs=2)
    assert reads == [[]]
    assert moves.written == [8]


def test_model_is_cloned_when_it_is_needed(
    keras2: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[Any] = []
    make = clone_module._clone

    def counted(source: Any) -> Any:
        made.append(source)
        return make(source)

    class Weighs(keras2.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.set_weights(self.model.get_weights())
            assert not made

        def on_train_end(self, logs: Any = None) -> None:
            assert isinstance(self.model, keras2.Model)
            assert len(self.model.layers) == 4
            self.model.save_weights(str(tmp_path / "w.h5"))

    monkeypatch.setattr(clone_module, "_clone", counted)
    best = keras2.callbacks.EarlyStopping("loss", restore_best_weights=True)
    keras_graph_loop(keras2, [best, Weighs(), keras2.callbacks.History()])
    assert len(made) == 1


def test_layers_that_a_compiled_function_has(keras: Any, keras2: Any) -> None:
    """`predict` compiles the clone; other methods use what it has compiled."""
    ones = np.ones([2, 2], "float32")
    found: list[tuple[Any, Any]] = []

    class Predicts(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.model.predict(ones)
            self.kept = self.model.predict_on_batch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            found.append((self.kept(ones), self.model(ones).numpy()))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            found.append((self.model.predict_on_batch(ones), self.model(ones).numpy()))

    keras_graph_loop(keras2, [Predicts()], epochs=1)
    assert len(found) == 4
    for own, expected in found:
        np.testing.assert_allclose(own, expected, rtol=1e-5)
