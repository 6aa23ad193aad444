"""`fit`, `evaluate` and `predict` of a model in a v1 graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1
X = np.random.RandomState(0).rand(320, 4).astype("f")
Y = X @ np.ones([4, 1], "f")


def make_model(keras: Any, **compiled: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Dense(4, activation="relu", name="hidden", input_shape=(4,)),
            layers.Dense(1, name="out"),
        ]
    )
    model.compile(**{"optimizer": "sgd", "loss": "mse", **compiled})
    return model


class Recorder(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes every call, and what it fetches."""

    def __init__(self, fetches: Any = None) -> None:
        self.fetches = fetches
        self.calls: list[str] = []
        self.results: list[Any] = []
        self.steps: list[int] = []

    def begin(self) -> None:
        self.calls.append("begin")
        self.graph = v1.get_default_graph()
        assert not self.graph.finalized
        self.step = v1.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.calls.append("after_create_session")
        self.session = session
        assert self.graph.finalized
        self.steps.append(int(session.run(self.step)))

    def before_run(self, run_context: Any) -> Any:
        self.calls.append("before_run")
        self.original_args = run_context.original_args
        return v1.train.SessionRunArgs(self.fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.calls.append("after_run")
        self.results.append(run_values.results)
        self.steps.append(int(run_context.session.run(self.step)))

    def end(self, session: Any) -> None:
        self.calls.append("end")
        self.steps.append(int(session.run(self.step)))


def lifecycle(runs: int) -> list[str]:
    run = ["before_run", "after_run"] * runs
    return ["begin", "after_create_session", *run, "end"]


def test_stop_at_step_stops_and_hooks_have_their_lifecycle(keras2: Any) -> None:
    model, recorder = make_model(keras2), Recorder("loss:0")
    stop = v1.train.StopAtStepHook(num_steps=15)
    history = model.fit(
        X, Y, epochs=9, verbose=0, callbacks=hb.as_callbacks([stop, recorder])
    )
    assert recorder.calls == lifecycle(15)
    assert recorder.steps == [0, *range(1, 16), 15]
    assert len(history.epoch) == 2
    assert np.mean(recorder.results[:10]) == pytest.approx(
        history.history["loss"][0], rel=1e-5
    )


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


def test_each_fit_has_a_life_of_its_own(keras2: Any) -> None:
    class Counts(Recorder):
        def begin(self) -> None:
            super().begin()
            count = v1.get_variable("count", [], initializer=v1.zeros_initializer())
            self.fetches = count.assign_add(1.0)

    model = make_model(keras2)
    for first in (0, 10):
        hook = Counts()
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
        assert hook.calls == lifecycle(10)
        assert hook.steps == [first, *range(first + 1, first + 11), first + 10]
        assert hook.results == list(range(1, 11))
    assert "count" not in {v.op.name for v in v1.global_variables()}
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


def test_data_of_every_kind(keras2: Any) -> None:
    def batches() -> Any:
        while True:
            yield X[:32], Y[:32]

    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(32)
    model = make_model(keras2)
    recorder = Recorder(["loss:0", "hidden/Relu:0"])
    model.fit(
        dataset,
        epochs=2,
        verbose=0,
        validation_data=dataset,
        validation_steps=2,
        callbacks=hb.as_callbacks(recorder),
    )
    assert recorder.calls == lifecycle(20)
    assert recorder.results[0][1].shape == (32, 4)
    recorder = Recorder("loss:0")
    stop = v1.train.StopAtStepHook(num_steps=6)
    guests = hb.as_callbacks([stop, recorder])
    model.fit(batches(), steps_per_epoch=4, epochs=9, verbose=0, callbacks=guests)
    assert recorder.calls == lifecycle(6)


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


def test_logging_and_step_counter(
    keras2: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tf.get_logger().setLevel("INFO")
    tf.get_logger().propagate = True
    model = make_model(keras2)
    names = ["loss:0", "global_step:0", "hidden/Relu:0", "hidden/kernel:0"]
    hooks = [
        v1.train.LoggingTensorHook(names, every_n_iter=5),
        v1.train.StepCounterHook(every_n_steps=5, output_dir=str(tmp_path)),
    ]
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hooks))
    logged = [r.getMessage() for r in caplog.records]
    assert sum("loss:0 = " in line for line in logged) == 2
    assert list(tmp_path.glob("events.out.tfevents*"))


def test_unknown_names_have_the_nearest_ones(keras2: Any) -> None:
    model = make_model(keras2)
    guests = hb.as_callbacks(v1.train.LoggingTensorHook(["hiden/Relu:0"], 1))
    with pytest.raises(hb.errors.UnknownTensorError, match="`hidden/Relu:0`"):
        model.fit(X, Y, verbose=0, callbacks=guests)
    model.fit(X, Y, verbose=0)


def test_an_error_ends_the_run_without_end(keras2: Any) -> None:
    class Fails(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            raise ValueError("from a hook")

    model, recorder = make_model(keras2), Recorder()
    with pytest.raises(ValueError, match="from a hook"):
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks([recorder, Fails()]))
    assert recorder.calls == lifecycle(1)[:-1]
    model.fit(X, Y, verbose=0)
    assert recorder.calls == lifecycle(1)[:-1]


def test_a_strategy_is_refused_by_name(keras2: Any) -> None:
    with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
        model = make_model(keras2)
    with pytest.raises(hb.errors.RefusedError, match=r"`Recorder`.*strategy"):
        model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(Recorder()))


def test_in_begin_makes_its_hook_on_the_graph(keras2: Any) -> None:
    hook = hb.in_begin(lambda: v1.train.FinalOpsHook(v1.train.get_global_step() * 2))
    model = make_model(keras2)
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert hook.final_ops_values == 20


@pytest.mark.parametrize("kind", ["arrays", "dataset", "generator"])
def test_a_stopped_loop_returns_what_it_has_seen(keras2: Any, kind: str) -> None:
    class StopsAfter(Recorder):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(run_context, run_values)
            if len(self.results) == 3:
                run_context.request_stop()

    def batches() -> Any:
        while True:
            for begin in range(0, 320, 32):
                yield X[begin : begin + 32], Y[begin : begin + 32]

    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(32)

    def given(steps: str) -> dict[str, Any]:
        if kind == "generator":
            return {"x": batches(), steps: 10}
        return {"x": X, "y": Y} if kind == "arrays" else {"x": dataset}

    model = make_model(keras2)
    expected = model.evaluate(X[:96], Y[:96], verbose=0)
    hook = StopsAfter("loss:0")
    result = model.evaluate(
        **given("steps"), verbose=0, callbacks=hb.as_callbacks(hook)
    )
    assert result == pytest.approx(expected, rel=1e-5)
    assert hook.calls == lifecycle(3)
    hook = StopsAfter()
    data = {key: value for key, value in given("steps").items() if key != "y"}
    result = model.predict(**data, callbacks=hb.as_callbacks(hook))
    np.testing.assert_allclose(result, model.predict(X[:96]), rtol=1e-5)
    hook, data = StopsAfter("loss:0"), given("steps_per_epoch")
    history = model.fit(**data, verbose=0, callbacks=hb.as_callbacks(hook))
    assert history.history["loss"][0] == pytest.approx(np.mean(hook.results), rel=1e-5)


@pytest.mark.parametrize("where", ["before_run", "after_run"])
@pytest.mark.parametrize("error", [StopIteration, tf.errors.OutOfRangeError])
def test_errors_that_stop_a_session_loop_stop_fit(
    keras2: Any, where: str, error: Any
) -> None:
    class Raises(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
        def raise_in_third(self, *args: Any) -> None:
            self.runs = getattr(self, "runs", 0) + 1
            if self.runs == 3:
                raise error() if error is StopIteration else error(None, None, "")

    hook, recorder = Raises(), Recorder()
    setattr(hook, where, hook.raise_in_third)
    model = make_model(keras2)
    history = model.fit(
        X, Y, epochs=3, verbose=0, callbacks=hb.as_callbacks([recorder, hook])
    )
    runs = 3 if where == "after_run" else 2
    calls = lifecycle(runs)[:-1]
    assert recorder.calls == [*calls, *["before_run"] * (3 - runs), "end"]
    assert len(history.epoch) == 1
    assert recorder.steps[-1] == runs


def test_learning_rate_and_gradients_are_fetched_and_fed(keras2: Any) -> None:
    class Feeds(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            return v1.train.SessionRunArgs(self.fetches, {"learning_rate:0": 0.0})

    model = make_model(keras2)
    before = model.get_weights()
    hook = Feeds(["learning_rate:0", "gradients/out/kernel:0"])
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert [r[0] for r in hook.results] == [0.0] * 10
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    hook = Recorder(["learning_rate:0", "gradients/out/kernel:0"])
    before = model.get_weights()
    model.fit(X, Y, batch_size=320, verbose=0, callbacks=hb.as_callbacks(hook))
    rate, gradient = hook.results[0]
    np.testing.assert_allclose(
        model.get_weights()[2], before[2] - rate * gradient, rtol=1e-5
    )


def test_a_feed_reaches_the_step(keras2: Any) -> None:
    class Zeros(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            zeros = np.zeros([32, 4], "f")
            return v1.train.SessionRunArgs(["hidden/Relu:0"], {"hidden/Relu:0": zeros})

    model = make_model(keras2)
    hook = Zeros()
    result = model.predict(X, callbacks=hb.as_callbacks(hook))
    np.testing.assert_array_equal(result, np.zeros([320, 1]))
    np.testing.assert_array_equal(hook.results[0], np.zeros([1, 32, 4]))
    with pytest.raises(RuntimeError, match="Same tensor is fed by two hooks"):
        model.predict(X, callbacks=hb.as_callbacks([Zeros(), Zeros()]))


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


def test_a_lost_session_is_recovered(keras2: Any) -> None:
    class Loses(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
        runs = 0

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.runs += 1
            if self.runs == 3:
                raise tf.errors.AbortedError(None, None, "lost")

    recorder = Recorder()
    model = make_model(keras2)
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks([recorder, Loses()]))
    run = ["before_run", "after_run"]
    assert recorder.calls == [
        "begin",
        "after_create_session",
        *run * 3,
        "after_create_session",
        *run * 8,
        "end",
    ]


def test_the_loop_fetches_and_feeds_as_a_session_loop(keras2: Any) -> None:
    class Refetches(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            return v1.train.SessionRunArgs(self.original_args.fetches)

    model, hook = make_model(keras2, metrics=["mae"]), Refetches()
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert set(hook.results[0]) == set(model.metrics_names)
    fed = hook.original_args.feed_dict
    assert any(np.shape(value) == (32, 4) for value in fed.values())
    hook = Refetches()
    result = model.predict(X, callbacks=hb.as_callbacks(hook))
    np.testing.assert_array_equal(
        np.concatenate([r["out"] for r in hook.results]), result
    )


def test_options_and_metadata_reach_the_step(keras2: Any) -> None:
    class Traces(Recorder):
        def before_run(self, run_context: Any) -> Any:
            super().before_run(run_context)
            trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            return v1.train.SessionRunArgs(None, options=trace)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(run_context, run_values)
            self.stats = run_values.run_metadata.step_stats.dev_stats

    model, hook = make_model(keras2), Traces()
    model.fit(X, Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert len(hook.stats) > 0
