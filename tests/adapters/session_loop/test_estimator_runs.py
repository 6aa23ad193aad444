"""Callbacks in `tf.estimator`, and under `tf.distribute`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, VAL_X, VAL_Y, Loop, assert_same, fit, session_loop
from callback_recorder import EVENTS, PREDICT_EVENTS, callback_of, noting
from estimator_models import (
    MODEL,
    bare_model_fn,
    bare_outputs,
    estimators,
    eval_input,
    in_estimator,
    keras_model_fn,
    predict_input,
    train_input,
)
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
REFUSAL = (
    r"`Functions` cannot run in a session loop: "
    r"`(CollectiveAllReduceStrategy|MultiWorkerMirroredStrategy)`.*MirroredVariable.*"
    r"Instead, replicate with `hb\.replicate_model_fn"
)


def test_estimators_under_strategies(keras: Any, tmp_path: Path) -> None:
    """One that mirrors variables carries hooks only; one that does not carries all."""
    history = keras.callbacks.History()
    begun: list[int] = []
    begins = callback_of(keras, on_train_begin=lambda self, logs: begun.append(0))

    def train(strategy: Any, guests: list[Any]) -> Any:
        config = estimators.RunConfig(
            str(tmp_path / type(strategy).__name__), train_distribute=strategy
        )
        estimator = estimators.Estimator(bare_model_fn, config=config)
        hooks.extend(hb.as_hooks(guests, steps_per_epoch=2, epochs=2))
        return estimator.train(train_input, hooks=hooks, steps=9)

    hooks: list[Any] = []
    # Not collectives: those of two graphs in one process would share their keys.
    reduction = tf.distribute.ReductionToOneDevice()
    mirrored = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"], reduction)
    with pytest.raises(errors.RefusedError, match=r"`Functions`.*`MirroredStrategy`"):
        train(mirrored, [begins, history])
    assert begun == []
    hooks.clear()
    # The epochs of hooks only cost one read of the global step, and no state.
    fetched: list[Any] = []
    hook = hook_of(
        before_run=lambda self, run: fetched.append(hooks[-1].before_run(run).fetches)
    )
    estimator = train(mirrored, [hook])
    assert estimator.get_variable_value("global_step") == len(fetched) == 4
    assert all(each.dtype == tf.int64 for each in fetched)  # the step, no loss
    assert not list(tmp_path.rglob("*.json"))
    hooks.clear()
    train(tf.distribute.OneDeviceStrategy("cpu:0"), [begins, history])
    assert len(history.history["loss"]) == 2 and list(tmp_path.rglob("*.json"))


def test_mirrored_variables_are_refused(keras: Any) -> None:
    """In the scope of a strategy; and a rate alone, when the scope has ended."""

    def read(self: Any, model: Any) -> None:
        model.optimizer.learning_rate.numpy()

    guest = callback_of(keras, set_model=read)
    with (
        tf.Graph().as_default(),
        tf.distribute.MultiWorkerMirroredStrategy().scope(),
        pytest.raises(errors.RefusedError, match=REFUSAL),
    ):
        v1.train.get_or_create_global_step()
        hb.as_hooks(guest)[0].begin()
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
            rate = v1.get_variable("rate", initializer=0.25, trainable=False)
        weight = v1.get_variable("weight", initializer=2.0, use_resource=True)
        v1.train.GradientDescentOptimizer(rate).minimize(weight**2, step)
        with pytest.raises(
            errors.RefusedError, match=r'`Fu.*`MirroredStrategy` keeps.*"rate:0"'
        ):
            hb.as_hooks(guest)[0].begin()


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_sidecar_export_in_evaluation_keeps_the_best(
    keras2: Any, tmp_path: Path
) -> None:
    estimator = estimators.Estimator(bare_model_fn, str(tmp_path / "model"))
    export = keras2.callbacks.SidecarEvaluatorModelExport(
        export_filepath=str(tmp_path / "best-{epoch:04d}.h5"),
        checkpoint_filepath=str(tmp_path / "ckpt-{epoch:04d}"),
        save_weights_only=True,
        monitor="loss",
    )
    hooks = hb.as_hooks(export)
    losses = []
    for epoch in (1, 2, 3):
        if epoch < 3:  # the third evaluation is not better than the second
            estimator.train(train_input, steps=3)
        (tmp_path / f"ckpt-{epoch:04d}").touch()
        (tmp_path / f"ckpt-{epoch - 1:04d}").unlink(missing_ok=True)
        losses.append(estimator.evaluate(train_input, steps=6, hooks=hooks)["loss"])
    assert losses[0] > losses[1] == losses[2] == pytest.approx(export.best)
    saved = sorted(tmp_path.glob("best-*"))
    assert [path.name for path in saved] == ["best-0001.h5", "best-0002.h5"]
    model = keras2.Sequential([keras2.layers.Dense(1, input_shape=(2,), name="dense")])
    model.load_weights(str(saved[1]))
    kernel = estimator.get_variable_value("dense/kernel")
    assert model.get_weights()[0] == pytest.approx(kernel)


def recorder(keras: Any, log: list[Any]) -> Any:
    events = (*EVENTS, *PREDICT_EVENTS)
    return noting(keras, lambda self, *event: log.append(event), events)


def events(mode: str) -> list[str]:
    """The last batch meets the end of the data."""
    batch = [f"on_{mode}_batch_begin", f"on_{mode}_batch_end"]
    return [f"on_{mode}_begin", *batch * STEPS, batch[0], f"on_{mode}_end"]


def test_train_with_validation_evaluate_and_predict(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    estimator = estimators.Estimator(keras_model_fn, str(tmp_path / "model"))
    options: dict[str, Any] = {"steps_per_epoch": STEPS, "model": lambda: MODEL[0]}
    log: list[Any] = []
    steps_of_evaluation: list[int] = []

    def note_step(self: Any, session: Any) -> None:
        steps_of_evaluation.append(int(session.run(v1.train.get_global_step())))

    spec = estimators.EvalSpec(eval_input, steps=None, hooks=[hook_of(end=note_step)])
    c = keras.callbacks
    history, whole_model = c.History(), str(tmp_path / "model.keras")
    stop = c.EarlyStopping("val_mae", patience=1, min_delta=0.05)
    guests = [recorder(keras, log), stop, history, c.ModelCheckpoint(whole_model)]
    validation = (estimator, spec)
    hooks = hb.as_hooks(guests, epochs=30, validation=validation, **options)
    estimator.train(train_input, hooks=hooks)
    epochs = len(history.history["loss"])
    assert 1 < epochs < 30
    assert list(history.history) == ["loss", "val_loss", "val_mae"]
    assert estimator.get_variable_value("global_step") == epochs * STEPS
    # The validation saw the variables of the step at which each epoch ended.
    assert steps_of_evaluation == [STEPS * (e + 1) for e in range(epochs)]
    counts = Counter(e[0] for e in log)
    assert counts["on_test_begin"] == counts["on_test_end"] == epochs
    assert counts["on_test_batch_end"] == counts["on_train_batch_end"] == epochs * STEPS
    batches = [e for e in log if e[0] == "on_test_batch_end"]
    assert list(batches[0][2]) == ["loss", "mae"]
    ends = [e[1] for e in log if e[0] == "on_test_end"]
    assert batches[STEPS - 1][2] == pytest.approx(ends[0])
    loaded = keras2.models.load_model(whole_model, compile=False)
    kernel = estimator.get_variable_value("dense/kernel")
    np.testing.assert_array_equal(loaded.get_weights()[0], kernel)

    log.clear()
    hooks = hb.as_hooks(recorder(keras, log), **options)
    result = estimator.evaluate(eval_input, hooks=hooks)
    assert [e[0] for e in log] == events("test")
    assert list(log[-1][1]) == ["loss", "mae"]
    for key, value in log[-1][1].items():
        assert isinstance(value, float)
        assert value == pytest.approx(float(result[key]))
    assert log[-3][2] == pytest.approx(log[-1][1])  # running means, as in Keras
    log.clear()
    predicted = [p["y"] for p in estimator.predict(predict_input, hooks=hooks)]
    assert [e[0] for e in log] == events("predict")
    outputs = [e[2]["outputs"]["y"] for e in log if e[0] == "on_predict_batch_end"]
    np.testing.assert_array_equal(np.concatenate(outputs), predicted)


@pytest.mark.parametrize(
    ("wrapped", "event"), [("once", "on_test_end"), ("apart", "on_test_batch_end")]
)
def test_stop_after_an_evaluation_in_mid_training(
    keras: Any, tmp_path: Path, wrapped: str, event: str
) -> None:
    """As in `fit`: evaluation and training share the flag, and may share their hooks.

    The evaluation calls `set_model`, in which a `TensorBoard` makes new writers and
    counters.
    """
    seen: list[Any] = []

    def note(callback: Any, name: str, *args: Any) -> None:
        step = int(callback.model.optimizer.iterations.numpy())
        seen.append((name, step, id(callback.model)))
        if name == event and step >= 2 * STEPS:
            callback.model.stop_training = True

    config = estimators.RunConfig(str(tmp_path / "model"), save_checkpoints_steps=STEPS)
    estimator = estimators.Estimator(bare_model_fn, config=config)
    guests = [
        noting(keras, note, [e for e in EVENTS if not e.endswith("h_begin")]),
        keras.callbacks.TensorBoard(
            str(tmp_path / "logs"), update_freq=STEPS, write_graph=False
        ),
    ]
    hooks = hb.as_hooks(guests, steps_per_epoch=STEPS)
    again = hb.as_hooks(guests, steps_per_epoch=STEPS) if wrapped == "apart" else hooks
    times = {"throttle_secs": 0, "start_delay_secs": 0}
    estimators.train_and_evaluate(
        estimator,
        estimators.TrainSpec(train_input, max_steps=5 * STEPS, hooks=hooks),
        estimators.EvalSpec(eval_input, steps=2, hooks=again, **times),
    )
    assert estimator.get_variable_value("global_step") == 2 * STEPS
    trained = {e[2] for e in seen if "test" not in e[0]}
    assert len(trained) == 1, seen
    evaluated = [e for e in seen if "test" in e[0]]
    assert {e[1] for e in evaluated} == {STEPS, 2 * STEPS}
    assert not trained & {e[2] for e in evaluated}
    assert seen[-1][0] in ("on_train_end", "on_test_end")
    written = [
        event.step
        for path in sorted((tmp_path / "logs" / "train").iterdir())
        for event in v1.train.summary_iterator(str(path))
        for value in event.summary.value
        if "epoch_loss" in value.tag
    ]
    assert written == [0, 1]


class InMemory:
    """A validation on the live variables: no checkpoint is written or read."""

    metric_names = ("loss", "mae")

    def begin(self) -> None:
        with v1.variable_scope("", reuse=True), v1.name_scope("val"):
            error = bare_outputs(VAL_X) - VAL_Y
            self.means = [tf.reduce_mean(f(error)) for f in (tf.square, tf.abs)]

    def run(self, session: Any, report: Any) -> dict[str, float]:
        report.batch_begin(0)
        values = dict(zip(self.metric_names, session.run(self.means), strict=True))
        report.batch_end(0, values)
        return values


EPOCHS = 40


def guests(keras: Any, folder: Path) -> list[Any]:
    """Callbacks that set the rate or the weights, that stop, and that write files."""
    c = keras.callbacks
    folder.mkdir()
    return [
        c.LearningRateScheduler(lambda epoch, lr: lr * 0.9),
        c.ReduceLROnPlateau("val_loss", patience=1, min_delta=0.05, factor=0.5),
        c.EarlyStopping("val_loss", patience=3, restore_best_weights=True),
        c.CSVLogger(str(folder / "log.csv")),
        c.ModelCheckpoint(
            str(folder / "w{epoch:02d}-{val_mae:.3f}.weights.h5"),
            monitor="val_mae",
            save_best_only=True,
            save_weights_only=True,
        ),
        c.TensorBoard(str(folder / "tb"), write_graph=False),
        c.TerminateOnNaN(),
        c.History(),
    ]


@pytest.mark.slow
def test_same_as_in_fit(keras: Any, tmp_path: Path) -> None:
    """In a session, in an Estimator and in one with a Keras model; then in both again.

    A validation is on the live variables or on the Estimator's checkpoints.
    """

    def val_data() -> Any:
        return tf.data.Dataset.from_tensor_slices((VAL_X, VAL_Y)).batch(4)

    of_fit = guests(keras, tmp_path / "fit")
    expected = fit(keras, of_fit, epochs=EPOCHS)
    assert len(expected.history["loss"]) < EPOCHS
    of_session = guests(keras, tmp_path / "session")
    found = {"session": session_loop(of_session, epochs=EPOCHS)}
    for name, uses_keras in (("bare", False), ("keras", True)):
        callbacks, folder = guests(keras, tmp_path / name), tmp_path / name / "model"
        options: dict[str, Any] = {"validation": InMemory()}
        if uses_keras:
            options = {"val_data": val_data, "uses_keras": True}
        value = in_estimator(callbacks, folder, epochs=EPOCHS, **options)
        weights = [value("dense/kernel"), value("dense/bias")]
        history = callbacks[-1].history
        found[name] = Loop(history, weights, int(value("global_step")))
    for name, loop in found.items():
        assert_same(loop, expected)
        for pattern in ("*.h5", "log.csv"):
            files = [
                sorted(p.name for p in (tmp_path / n).glob(pattern))
                for n in ("fit", name)
            ]
            assert files[0] == files[1] != [], name
    assert_same(session_loop(of_fit[:-1], epochs=EPOCHS), expected)
    assert_same(fit(keras, of_session[:-1], epochs=EPOCHS), expected)
