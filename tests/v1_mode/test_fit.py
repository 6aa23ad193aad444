"""`fit`, `evaluate` and `predict` of a model in a v1 graph."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from graph_recorder import Recorder, X, Y, lifecycle, make_model

import hookbridge as hb

v1 = tf.compat.v1
RATE = "learning_rate:0"


def test_stop_at_step_stops_and_hooks_have_their_lifecycle(keras2: Any) -> None:
    model, recorder = make_model(keras2), Recorder("loss:0")
    stop = v1.train.StopAtStepHook(num_steps=15)
    final = hb.in_begin(lambda: v1.train.FinalOpsHook(v1.train.get_global_step() * 2))
    guests = hb.as_callbacks([stop, recorder, final])
    history = model.fit(X, Y, epochs=9, verbose=0, callbacks=guests)
    assert recorder.calls == lifecycle(15)
    assert recorder.steps == [0, *range(1, 16), 15]
    assert final.final_ops_values == 30
    assert len(history.epoch) == 2
    assert np.mean(recorder.results[:10]) == pytest.approx(
        history.history["loss"][0], rel=1e-5
    )


def test_an_optimizer_of_v1_graphs_shows_its_rate(keras2: Any) -> None:
    of_v1 = importlib.import_module(f"{keras2.__name__}.src.optimizers.optimizer_v1")
    model, recorder = make_model(keras2, optimizer=of_v1.SGD(0.25)), Recorder(RATE)
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(recorder))
    assert recorder.results == [0.25] * 10


def test_hooks_change_nothing(keras2: Any) -> None:
    losses = []
    for hooks in ([], [Recorder(["loss:0", "hidden/kernel:0"])]):
        keras2.backend.clear_session()
        model = make_model(keras2, optimizer="adam")
        model.set_weights([np.full(w.shape, 0.1) for w in model.get_weights()])
        history = model.fit(
            X, Y, 64, 3, shuffle=False, verbose=0, callbacks=hb.as_callbacks(hooks)
        )
        losses.append(history.history["loss"])
    assert losses[0] == losses[1]


def test_a_variable_may_begin_with_the_value_of_another(keras2: Any) -> None:
    """A schedule of Keras 2 makes two such variables, which no optimizer uses."""

    def late() -> Any:
        time.sleep(0.1)  # a slow value
        return np.float32(3.0)

    class Doubles(Recorder):
        def begin(self) -> None:
            super().begin()
            value = tf.ensure_shape(tf.numpy_function(late, [], tf.float32), [])
            first = v1.Variable(value, use_resource=True)
            second = v1.Variable(first.read_value() * 2.0, use_resource=True)
            self.fetches = second.read_value()

    hook = Doubles()
    model = make_model(keras2)
    model.fit(X, Y, 160, verbose=0, callbacks=hb.as_callbacks(hook))
    assert hook.results == [6.0, 6.0]


def test_each_fit_has_a_life_of_its_own(subtests: pytest.Subtests, keras2: Any) -> None:
    class Counts(Recorder):
        def begin(self) -> None:
            super().begin()
            count = v1.get_variable("count", [], initializer=v1.zeros_initializer())
            self.fetches = count.assign_add(1.0)

    def constants() -> int:
        ops = v1.get_default_graph().get_operations()
        return sum(op.type == "Const" for op in ops)

    model, counts = make_model(keras2), []
    for first in (0, 10):
        with subtests.test(str(first)):
            hook = Counts()
            model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
            assert hook.calls == lifecycle(10)
            assert hook.steps == [first, *range(first + 1, first + 11), first + 10]
            assert hook.results == list(range(1, 11))
    assert "count" not in {v.op.name for v in v1.global_variables()}
    for _ in range(2):  # another fit adds no constants to the graph
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(Recorder()))
        counts.append(constants())
    assert counts[1] == counts[0]
    model.fit(X, Y, verbose=0)
    assert hook.calls == lifecycle(10)


def test_evaluate_and_predict_run_hooks(keras2: Any) -> None:
    model = make_model(keras2)
    model.fit(X, Y, verbose=0)
    expected = model.evaluate(X, Y, verbose=0), model.predict(X)
    recorder = Recorder("loss:0")
    result = model.evaluate(X, Y, verbose=0, callbacks=hb.as_callbacks(recorder))
    assert result == expected[0] == pytest.approx(np.mean(recorder.results), rel=1e-5)
    assert recorder.calls == lifecycle(10)
    assert set(recorder.steps) == {10}
    recorder = Recorder("out/BiasAdd:0")
    result = model.predict(X, callbacks=hb.as_callbacks(recorder))
    np.testing.assert_array_equal(result, expected[1])
    np.testing.assert_array_equal(result, np.concatenate(recorder.results))
    assert recorder.calls == lifecycle(10)


class StopsAfter(Recorder):
    """Ends a loop with its third run."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        super().after_run(run_context, run_values)
        if len(self.results) == 3:
            run_context.request_stop()


def batches() -> Any:
    while True:
        for begin in range(0, 320, 32):
            yield X[begin : begin + 32], Y[begin : begin + 32]


@pytest.mark.v1_mode("disable_v2_behavior")
@pytest.mark.parametrize("kind", ["arrays", "dataset", "generator"])
def test_data_of_every_kind(keras2: Any, kind: str) -> None:
    """A stopped loop returns what it has seen of them."""
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(32)

    def run(loop: str, fetches: Any = None) -> tuple[StopsAfter, Any]:
        hook = StopsAfter(fetches)
        data: dict[str, Any] = {"x": X, "y": Y} if kind == "arrays" else {"x": dataset}
        if kind == "generator":
            steps = "steps_per_epoch" if loop == "fit" else "steps"
            data = {"x": batches(), steps: 10}
        if loop == "predict":
            data.pop("y", None)
        guests = hb.as_callbacks(hook)
        return hook, getattr(model, loop)(**data, verbose=0, callbacks=guests)

    model = make_model(keras2)
    expected = model.evaluate(X[:96], Y[:96], verbose=0)
    hook, result = run("evaluate", "loss:0")
    assert result == pytest.approx(expected, rel=1e-5)
    assert hook.calls == lifecycle(3)
    hook, result = run("predict")
    np.testing.assert_allclose(result, model.predict(X[:96]), rtol=1e-5)
    hook, history = run("fit", "loss:0")
    assert history.history["loss"][0] == pytest.approx(np.mean(hook.results), rel=1e-5)
    recorder = Recorder(["loss:0", "hidden/Relu:0"])
    validation = {"validation_data": dataset, "validation_steps": 2}
    guests = hb.as_callbacks(recorder)
    model.fit(dataset, epochs=2, verbose=0, callbacks=guests, **validation)
    assert recorder.calls == lifecycle(20)
    assert recorder.results[0][1].shape == (32, 4)


def test_checkpoints_load_in_a_v1_saver(keras2: Any, tmp_path: Path) -> None:
    model = make_model(keras2, optimizer="adam")
    hook = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=4)
    recorder = Recorder()
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks([hook, recorder]))
    trained = model.get_weights()
    checkpoint = tf.train.latest_checkpoint(tmp_path)
    assert checkpoint.endswith("model.ckpt-10")
    assert tf.train.load_variable(checkpoint, "global_step") == 10
    model.set_weights([0 * w for w in trained])
    v1.train.Saver().restore(recorder.session, checkpoint)
    for restored, expected in zip(model.get_weights(), trained, strict=True):
        np.testing.assert_array_equal(restored, expected)
    assert v1.train.get_global_step() is None


def test_a_strategy_is_refused_by_name(keras2: Any) -> None:
    with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
        model = make_model(keras2)
    with pytest.raises(hb.errors.RefusedError, match=r"`Recorder`.*strategy"):
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(Recorder()))


def test_loops_in_callbacks_and_hooks_of_their_own(keras2: Any) -> None:
    inner = Recorder()
    model = make_model(keras2)

    def evaluate(epoch: int, logs: Any) -> None:
        model.evaluate(X, Y, verbose=0, callbacks=hb.as_callbacks(inner))
        model.train_on_batch(X[:32], Y[:32])

    outer = Recorder("loss:0")
    callback = keras2.callbacks.LambdaCallback(on_epoch_end=evaluate)
    model.fit(X, Y, epochs=2, verbose=0, callbacks=hb.as_callbacks([outer, callback]))
    assert inner.calls == lifecycle(10) * 2
    assert outer.calls == lifecycle(20)
    assert outer.steps[-1] == 22
