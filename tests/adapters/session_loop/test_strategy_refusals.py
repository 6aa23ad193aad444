"""Callbacks and `tf.distribute`: strategies that mirror variables are refused."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from estimator_models import bare_model_fn, estimators, train_input

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

    class Reads(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def set_model(self, model: Any) -> None:
            model.optimizer.learning_rate.numpy()

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
            rate = v1.get_variable("rate", initializer=0.25, trainable=False)
        weight = v1.get_variable("weight", initializer=2.0, use_resource=True)
        v1.train.GradientDescentOptimizer(rate).minimize(weight**2, step)
        with pytest.raises(
            errors.RefusedError, match=r'`Reads`.*`MirroredStrategy` keeps.*"rate:0"'
        ):
            hb.as_hooks(Reads())[0].begin()


def test_estimator_under_a_mirrored_strategy_is_refused(
    keras: Any, tmp_path: Path
) -> None:
    config = estimators.RunConfig(
        str(tmp_path / "model"),
        train_distribute=tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"]),
    )
    log: list[int] = []

    class Batches(keras.callbacks.CSVLogger):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            log.append(0)

    hooks = hb.as_hooks(Batches(str(tmp_path / "log.csv")), steps_per_epoch=2)
    with pytest.raises(errors.RefusedError, match=r"`Batches`.*`MirroredStrategy`"):
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
