"""Callbacks in `tf.estimator`, and under `tf.distribute`."""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of, noting
from estimator_models import (
    KERAS2,
    MODEL,
    STEPS,
    bare_model_fn,
    estimators,
    eval_input,
    keras_model_fn,
    predict_input,
    train_input,
)
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

REFUSAL = (
    r"`CSVLogger` cannot run in a session loop: `{}`.*MirroredVariable.*"
    r"Instead, replicate with `hb\.replicate_model_fn"
)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("MirroredStrategy", lambda: tf.distribute.MirroredStrategy(["cpu:0"])),
        (
            "CollectiveAllReduceStrategy|MultiWorkerMirroredStrategy",
            tf.distribute.MultiWorkerMirroredStrategy,
        ),
    ],
)
def test_mirrored_variables_are_refused(
    keras: Any, name: str, make: Any, tmp_path: Path
) -> None:
    callbacks = [keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))]
    hooks = hb.as_hooks(callbacks, steps_per_epoch=2)
    with (
        tf.Graph().as_default(),
        make().scope(),
        pytest.raises(errors.RefusedError, match=REFUSAL.format(f"({name})")),
    ):
        tf.compat.v1.train.get_or_create_global_step()
        hooks[0].begin()
    assert not list(tmp_path.iterdir())


def test_a_mirrored_learning_rate_alone_is_refused(keras: Any) -> None:
    """The scope of the strategy has ended, and no trainable variable is mirrored."""

    def read(self: Any, model: Any) -> None:
        model.optimizer.learning_rate.numpy()

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
            rate = v1.get_variable("rate", initializer=0.25, trainable=False)
        weight = v1.get_variable("weight", initializer=2.0, use_resource=True)
        v1.train.GradientDescentOptimizer(rate).minimize(weight**2, step)
        with pytest.raises(
            errors.RefusedError, match=r'`Fu.*`MirroredStrategy` keeps.*"rate:0"'
        ):
            hb.as_hooks(callback_of(keras, set_model=read))[0].begin()


def test_estimator_under_a_mirrored_strategy_is_refused(
    keras: Any, tmp_path: Path
) -> None:
    config = estimators.RunConfig(
        str(tmp_path / "model"),
        train_distribute=tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"]),
    )
    log: list[int] = []
    begins = callback_of(keras, on_train_begin=lambda self, logs: log.append(0))
    hooks = hb.as_hooks(begins, steps_per_epoch=2)
    with pytest.raises(errors.RefusedError, match=r"`Functions`.*`MirroredStrategy`"):
        estimators.Estimator(bare_model_fn, config=config).train(
            train_input, hooks=hooks, max_steps=2
        )
    assert log == []


def test_strategy_without_mirrored_variables_is_carried(
    keras: Any, tmp_path: Path
) -> None:
    config = estimators.RunConfig(
        str(tmp_path / "model"),
        train_distribute=tf.distribute.OneDeviceStrategy("cpu:0"),
    )
    history = keras.callbacks.History()
    estimators.Estimator(bare_model_fn, config=config).train(
        train_input, hooks=hb.as_hooks(history, steps_per_epoch=2, epochs=2)
    )
    assert len(history.history["loss"]) == 2


@pytest.mark.slow
def test_sidecar_export_in_evaluation_keeps_the_best(
    keras2: Any, tmp_path: Path
) -> None:
    callbacks = importlib.import_module(keras2.__name__).callbacks
    config = estimators.RunConfig(str(tmp_path / "model"), tf_random_seed=1)
    estimator = estimators.Estimator(bare_model_fn, config=config)
    export = callbacks.SidecarEvaluatorModelExport(
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
    assert losses[0] > losses[1] == losses[2]
    assert export.best == pytest.approx(losses[1])
    saved = sorted(p.name for p in tmp_path.glob("best-*"))
    assert saved == ["best-0001.h5", "best-0002.h5"]
    model = keras2.Sequential(
        [keras2.layers.Dense(1, use_bias=False, input_shape=(2,), name="dense")]
    )
    model.load_weights(str(tmp_path / saved[1]))
    (kernel,) = model.get_weights()
    assert kernel == pytest.approx(estimator.get_variable_value("dense/kernel"))


EVENTS = [
    f"on_{m}_{e}"
    for m in ("train", "test", "predict")
    for e in ("begin", "batch_begin", "batch_end", "end")
] + ["on_epoch_begin", "on_epoch_end"]


def recorder(keras: Any, log: list[Any]) -> Any:
    return noting(keras, lambda self, *event: log.append(event), EVENTS)


@pytest.fixture(params=["bare", "keras"])
def estimator(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    function = {"bare": bare_model_fn, "keras": keras_model_fn}[request.param]
    config = estimators.RunConfig(str(tmp_path / "model"), tf_random_seed=1)
    return estimators.Estimator(function, config=config)


def options(estimator: Any) -> dict[str, Any]:
    uses_keras = estimator._model_fn is keras_model_fn
    return {
        "steps_per_epoch": STEPS,
        "model": (lambda: MODEL["model"]) if uses_keras else None,
    }


@pytest.mark.slow
def test_train_with_validation_by_the_estimator(keras: Any, estimator: Any) -> None:
    log: list[Any] = []
    steps_of_evaluation: list[int] = []

    def note_step(self: Any, session: Any) -> None:
        step = tf.compat.v1.train.get_global_step()
        steps_of_evaluation.append(int(session.run(step)))

    spec = estimators.EvalSpec(eval_input, steps=None, hooks=[hook_of(end=note_step)])
    history = keras.callbacks.History()
    stop = keras.callbacks.EarlyStopping(
        "val_mae", patience=1, min_delta=0.05, restore_best_weights=True
    )
    hooks = hb.as_hooks(
        [recorder(keras, log), stop, history],
        epochs=30,
        validation=(estimator, spec),
        **options(estimator),
    )
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


def test_evaluate_and_predict(keras: Any, estimator: Any, tmp_path: Path) -> None:
    log: list[Any] = []
    guests = [recorder(keras, [])]
    whole_model = str(tmp_path / "model.keras")
    if estimator._model_fn is keras_model_fn:
        guests.append(keras.callbacks.ModelCheckpoint(whole_model))
    hooks = hb.as_hooks(guests, epochs=1, **options(estimator))
    estimator.train(train_input, hooks=hooks)
    if len(guests) == 2:
        keras2 = importlib.import_module(KERAS2)
        loaded = keras2.models.load_model(whole_model, compile=False)
        kernel = estimator.get_variable_value("dense/kernel")
        np.testing.assert_array_equal(loaded.get_weights()[0], kernel)

    hooks = hb.as_hooks(recorder(keras, log), **options(estimator))
    result = estimator.evaluate(eval_input, hooks=hooks)
    assert [e[0] for e in log] == [
        "on_test_begin",
        *["on_test_batch_begin", "on_test_batch_end"] * STEPS,
        # This batch meets the end of the data.
        "on_test_batch_begin",
        "on_test_end",
    ]
    assert list(log[-1][1]) == ["loss", "mae"]
    for key, value in log[-1][1].items():
        assert isinstance(value, float)
        assert value == pytest.approx(float(result[key]))
    # Running means, as in Keras.
    assert log[-3][2] == pytest.approx(log[-1][1])
    log.clear()
    predicted = [p["y"] for p in estimator.predict(predict_input, hooks=hooks)]
    assert [e[0] for e in log] == [
        "on_predict_begin",
        *["on_predict_batch_begin", "on_predict_batch_end"] * STEPS,
        "on_predict_batch_begin",
        "on_predict_end",
    ]
    outputs = [e[2]["outputs"]["y"] for e in log if e[0] == "on_predict_batch_end"]
    np.testing.assert_array_equal(np.concatenate(outputs), predicted)


def _train_and_evaluate(callback: Any, folder: Path, wrapped: str) -> Any:
    """Evaluates after every epoch; training and evaluation may share their hooks."""
    config = estimators.RunConfig(
        str(folder / "model"), tf_random_seed=1, save_checkpoints_steps=STEPS
    )
    estimator = estimators.Estimator(bare_model_fn, config=config)
    train_hooks = hb.as_hooks(callback, steps_per_epoch=STEPS)
    eval_hooks = train_hooks
    if wrapped == "apart":
        eval_hooks = hb.as_hooks(callback, steps_per_epoch=STEPS)
    estimators.train_and_evaluate(
        estimator,
        estimators.TrainSpec(train_input, max_steps=5 * STEPS, hooks=train_hooks),
        estimators.EvalSpec(
            eval_input, steps=2, hooks=eval_hooks, throttle_secs=0, start_delay_secs=0
        ),
    )
    return estimator


@pytest.mark.parametrize(
    ("wrapped", "event"),
    [("once", "on_test_end"), ("apart", "on_test_batch_end"), ("once", "on_epoch_end")],
)
def test_stop_after_an_evaluation_in_mid_training(
    keras: Any, tmp_path: Path, wrapped: str, event: str
) -> None:
    """As in `fit`: evaluation and training share the flag."""
    seen: list[Any] = []

    def note(callback: Any, name: str, *args: Any) -> None:
        step = int(callback.model.optimizer.iterations.numpy())
        seen.append((name, step, id(callback.model)))
        if name == event and step >= 2 * STEPS:
            callback.model.stop_training = True

    callback = noting(keras, note, [e for e in EVENTS if not e.endswith("h_begin")])
    estimator = _train_and_evaluate(callback, tmp_path, wrapped)
    assert estimator.get_variable_value("global_step") == 2 * STEPS
    trained = {e[2] for e in seen if "test" not in e[0]}
    assert len(trained) == 1, seen
    evaluated = [e for e in seen if "test" in e[0]]
    assert {e[1] for e in evaluated} == {STEPS, 2 * STEPS}
    assert not trained & {e[2] for e in evaluated}
    assert seen[-1][0] in ("on_train_end", "on_test_end")


@pytest.mark.slow
def test_tensorboard_of_a_training_survives_its_evaluations(
    keras: Any, tmp_path: Path
) -> None:
    """The evaluation calls `set_model`, which makes new writers and counters."""
    callback = keras.callbacks.TensorBoard(
        str(tmp_path / "logs"), update_freq=2, write_graph=False
    )
    _train_and_evaluate(callback, tmp_path, "apart")
    steps = []
    for path in sorted((tmp_path / "logs" / "train").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            steps += [event.step for v in event.summary.value if "epoch_loss" in v.tag]
    assert steps == [0, 1, 2, 3, 4]
