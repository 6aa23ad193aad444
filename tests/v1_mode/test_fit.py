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
