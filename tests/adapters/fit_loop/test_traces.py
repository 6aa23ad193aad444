"""A model and its hooks are traced once, and nothing is left in memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hook_hosts as hosts
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch

import hookbridge as hb
from hookbridge.adapters.live_session.program import SessionProgram

ONE_KERAS = True

train: Any = tf.compat.v1.train


class Counted:
    """A model whose steps count how often Python runs them: once for each trace."""

    def __init__(self, keras: Any) -> None:
        outer = self
        self.traces = 0

        class Counting(keras.layers.Dense):  # type: ignore[misc,name-defined]
            def call(self, inputs: Any) -> Any:
                outer.traces += 1
                return super().call(inputs)

        layers = [keras.layers.Input((4,)), Counting(8, activation="relu", name="a")]
        self.model = keras.Sequential([*layers, keras.layers.Dense(3, name="b")])
        self.compile(keras)
        self.traces = 0

    def compile(self, keras: Any) -> None:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(keras.optimizers.SGD(0.1), loss, metrics=["accuracy"])


def stock_hooks(directory: Path) -> list[Any]:
    return [
        train.LoggingTensorHook(["loss:0"], every_n_iter=2),
        train.CheckpointSaverHook(str(directory), save_steps=2),
        train.StepCounterHook(every_n_steps=2, output_dir=str(directory)),
    ]


def fit(model: Any, hooks: list[Any], x: Any = hosts.X, **options: Any) -> None:
    model.fit(
        x,
        hosts.Y,
        batch_size=hosts.BATCH,
        shuffle=False,
        verbose=0,
        callbacks=hb.as_callbacks(hooks),
        **options,
    )


def test_a_second_fit_with_equal_hooks_traces_nothing(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(keras)
    alone: list[Any] = []
    trace = SessionProgram._trace

    def counting(program: Any, *args: Any) -> Any:
        alone.append(program)
        return trace(program, *args)

    monkeypatch.setattr(SessionProgram, "_trace", counting)
    fit(counted.model, stock_hooks(tmp_path / "1"))
    first, programs = counted.traces, len(alone)
    assert first and programs
    for each in ("2", "3"):
        fit(counted.model, stock_hooks(tmp_path / each))
    # The file names of a checkpoint are fed, so the function is the same.
    assert counted.traces == first and len(alone) == programs
    step = 3 * hosts.BATCHES
    assert hosts.read_checkpoint(str(tmp_path / "3" / f"model.ckpt-{step}"))
    counted.model.fit(hosts.X, hosts.Y, batch_size=hosts.BATCH, verbose=0)
    assert counted.traces == first


def test_names_that_stand_in_hooks_cost_no_trace(keras: Any, tmp_path: Path) -> None:
    class InCode(train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> Any:
            return train.SessionRunArgs({"of a": "a/Relu:0"})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.shape = run_values.results["of a"].shape

    native, counted = Counted(keras), Counted(keras)
    native.model.fit(hosts.X, hosts.Y, verbose=0)
    hook, names = InCode(), ["b/BiasAdd:0", "no/such:0"]
    hooks = [
        hook,
        train.LoggingTensorHook(["a/Relu:0"], every_n_iter=2),
        train.LoggingTensorHook(["accuracy:0", "loss:0"], every_n_iter=3),
        train.StepCounterHook(every_n_steps=2, output_dir=str(tmp_path)),
        train.CheckpointSaverHook(str(tmp_path), save_steps=3),
        hb.in_begin(lambda: Fetch(names[0])),
    ]
    fit(counted.model, hooks, epochs=3)
    assert hook.shape == (hosts.BATCH, 8)
    assert counted.traces == native.traces


def test_a_name_that_is_made_up_costs_one_trace_more(keras: Any) -> None:
    native, counted = Counted(keras), Counted(keras)
    native.model.fit(hosts.X, hosts.Y, verbose=0)
    hook = Fetch()
    hook.names = (f"{name}/Relu:0" for name in "a")  # type: ignore[assignment]
    fit(counted.model, [hook], epochs=3)
    assert native.traces < counted.traces <= 2 * native.traces


def test_a_step_that_returns_nothing_is_traced_anew_without_hooks(keras: Any) -> None:
    class Quiet(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs)

        def train_step(self, data: Any) -> Any:
            x, _ = data
            return {"mean": tf.reduce_mean(self(x))}

    model = Quiet()
    model.compile("sgd", "mse")
    hook = Fetch("mean:0")
    model.fit(hosts.X, hosts.Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert len(hook.seen)
    model.fit(hosts.X, hosts.Y, batch_size=3, verbose=0)


@pytest.mark.parametrize("loop", ["evaluate", "predict"])
def test_a_second_evaluate_or_predict_traces_nothing(keras: Any, loop: str) -> None:
    counted = Counted(keras)
    data = (hosts.X, hosts.Y) if loop == "evaluate" else (hosts.X,)
    seen, traces = [], []
    for _ in range(3):
        hook = Fetch("a/Relu:0")
        arguments = {"verbose": 0, "callbacks": hb.as_callbacks(hook)}
        getattr(counted.model, loop)(*data, batch_size=hosts.BATCH, **arguments)
        seen.append(np.concatenate([s[0] for s in hook.seen]))
        traces.append(counted.traces)
    np.testing.assert_array_equal(seen[0], seen[2])
    assert traces[0] == traces[2]


def test_other_hooks_and_other_data_get_their_values(keras: Any) -> None:
    counted = Counted(keras)
    fit(counted.model, [Fetch("loss:0")])
    other = Fetch("a/Relu:0")
    fit(counted.model, [other])
    assert [s[0].shape for s in other.seen] == [(hosts.BATCH, 8)] * hosts.BATCHES
    half = Fetch("a/Relu:0")
    counted.model.fit(
        hosts.X, hosts.Y, batch_size=4, verbose=0, callbacks=hb.as_callbacks(half)
    )
    assert {s[0].shape for s in half.seen} == {(4, 8)}


@pytest.fixture
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _living_iterators(keras: Any, callbacks: list[Any]) -> int:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = np.zeros((32, 4), "f"), np.zeros((32, 2), "f")
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
    model.evaluate(x, y, batch_size=8, verbose=0, callbacks=callbacks)
    return sum(isinstance(each, tf.data.Iterator) for each in gc.get_objects())


@pytest.mark.slow
@pytest.mark.usefixtures("_no_collection")
def test_iterators_end_with_the_loop(keras: Any) -> None:
    native = _living_iterators(keras, [])
    hooks = [tf.compat.v1.train.LoggingTensorHook(["loss:0"], every_n_iter=1)]
    assert _living_iterators(keras, hb.as_callbacks(hooks)) == native
