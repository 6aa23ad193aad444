"""A model and its hooks are traced once, and nothing is left in memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hook_loops
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, hook_of, run_loop, with_step

import hookbridge as hb
from hookbridge.adapters.live_session.program import SessionProgram

ONE_KERAS = True

train: Any = tf.compat.v1.train
DATA = (hook_loops.X, hook_loops.Y)


def counted(keras: Any) -> tuple[Any, list[None]]:
    """A model, and a list with an entry for each time that Python runs its step."""
    traces: list[None] = []

    class Counting(keras.layers.Dense):  # type: ignore[misc,name-defined]
        def call(self, inputs: Any) -> Any:
            traces.append(None)
            return super().call(inputs)

    layers = [keras.layers.Input((4,)), Counting(8, activation="relu", name="a")]
    model = keras.Sequential([*layers, keras.layers.Dense(3, name="b")])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, metrics=["accuracy"])
    traces.clear()
    return model, traces


def test_names_in_hooks_cost_no_trace_and_a_second_loop_none(
    subtests: pytest.Subtests,
    keras: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone: list[Any] = []
    trace = SessionProgram._trace

    def counting(program: Any, *args: Any) -> Any:
        alone.append(program)
        return trace(program, *args)

    monkeypatch.setattr(SessionProgram, "_trace", counting)
    model, native = counted(keras)
    run_loop(model, data=DATA)
    assert not alone
    names, programs = ["b/BiasAdd:0", "no/such:0"], []
    model, traces = counted(keras)
    for number in range(3):
        folder = str(tmp_path / str(number))
        in_code = hook_of(
            before_run=lambda self, context: train.SessionRunArgs({"of a": "a/Relu:0"}),
            after_run=lambda self, context, values: setattr(self, "last", values),
        )
        hooks = [
            in_code,
            train.LoggingTensorHook(["a/Relu:0"], every_n_iter=2),
            train.LoggingTensorHook(["accuracy:0", "loss:0"], every_n_iter=3),
            train.StepCounterHook(every_n_steps=2, output_dir=folder),
            train.CheckpointSaverHook(folder, save_steps=2),
            hb.in_begin(lambda: Fetch(names[0])),
        ]
        run_loop(model, *hooks, data=DATA)
        assert in_code.last.results["of a"].shape == (hook_loops.BATCH, 8)
        # The file names of a checkpoint are fed, so the function is the same.
        assert len(traces) == len(native)
        programs.append(len(alone))
    assert programs[0] and programs == programs[:1] * 3
    steps = 3 * hook_loops.BATCHES
    assert hook_loops.read_checkpoint(str(tmp_path / "2" / f"model.ckpt-{steps}"))
    run_loop(model, data=DATA)
    assert len(traces) == len(native)
    # Other hooks and other data get their values.
    for size in (hook_loops.BATCH, 4):
        with subtests.test(str(size)):
            other = Fetch("a/MatMul:0")
            run_loop(model, other, data=DATA, batch_size=size)
            assert {seen[0].shape for seen in other.seen} == {(size, 8)}
    for loop in ("evaluate", "predict"):
        with subtests.test(str(loop)):
            first, second = Fetch("a/Relu:0"), Fetch("a/Relu:0")
            run_loop(model, first, loop=loop, data=DATA)
            before = len(traces)
            run_loop(model, second, loop=loop, data=DATA)
            np.testing.assert_array_equal(first.seen, second.seen)
            assert len(traces) == before
    # A name that is made up costs one trace more.
    model, traces = counted(keras)
    hook = Fetch()
    hook.names = (f"{name}/Relu:0" for name in "a")  # type: ignore[assignment]
    run_loop(model, hook, data=DATA)
    assert len(native) < len(traces) <= 2 * len(native)


def test_a_step_that_returns_nothing_is_traced_anew_without_hooks(keras: Any) -> None:
    model = with_step(keras, lambda m, x, y: {"mean": tf.reduce_mean(m(x))}, "sgd")
    hook = Fetch("mean:0")
    run_loop(model, hook, data=DATA)
    assert len(hook.seen)
    run_loop(model, data=DATA, batch_size=3)


@pytest.fixture
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.usefixtures("_no_collection")
def test_iterators_end_with_the_loop(keras: Any) -> None:
    def living(*hooks: Any) -> int:
        model = hook_loops.keras_model(keras)
        for loop in ("fit", "evaluate"):
            run_loop(model, *hooks, loop=loop, data=DATA)
        return sum(isinstance(each, tf.data.Iterator) for each in gc.get_objects())

    native = living()
    assert living(train.LoggingTensorHook(["loss:0"], every_n_iter=1)) == native
