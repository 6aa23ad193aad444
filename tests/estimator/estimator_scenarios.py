"""Small Estimator trainings; tests compare all their numbers between versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1
STEPS = 6
BATCH = 8


def data(classes: int = 0) -> tuple[dict[str, Any], Any]:
    """24 examples: `x` of shape [24, 3], `city` strings [24, 1], labels [24, 1]."""
    rng = np.random.RandomState(3)
    x = rng.normal(size=(24, 3)).astype(np.float32)
    city = np.array(["oslo", "rome", "lima"])[np.arange(24) % 3].reshape(-1, 1)
    label = x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.3
    if classes:
        label = np.digitize(label, [-0.5, 0.5][: classes - 1]).astype(np.int64)
    return {"x": x, "city": city}, label


def input_fn(classes: int = 0, *, repeat: bool = True, batch: int = BATCH) -> Any:
    """An `input_fn` over `data` in a fixed order."""

    def make() -> Any:
        dataset = tf.data.Dataset.from_tensor_slices(data(classes))
        return (dataset.repeat() if repeat else dataset).batch(batch)

    return make


def evaluation(**options: Any) -> Any:
    """The held-out data, evaluated as often as there is a checkpoint."""
    data = options.pop("data", input_fn(repeat=False))
    return hb.estimator.EvalSpec(data, start_delay_secs=0, throttle_secs=0, **options)


def columns() -> list[Any]:
    """A numeric and a categorical feature column."""
    city = tf.feature_column.categorical_column_with_vocabulary_list(
        "city", ["oslo", "rome", "lima"]
    )
    return [
        tf.feature_column.numeric_column("x", shape=(3,)),
        tf.feature_column.indicator_column(city),
    ]


def custom_model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """A regression with one hidden layer of fixed initial values."""
    start = np.linspace(-0.5, 0.5, 12, dtype=np.float32).reshape(3, 4)
    ones, zeros = v1.ones_initializer(), v1.zeros_initializer()
    with v1.variable_scope("model"):
        kernel = v1.get_variable("hidden/kernel", initializer=start)
        hidden = tf.tanh(tf.matmul(features["x"], kernel), name="hidden/Tanh")
        weights = v1.get_variable("out/kernel", shape=[4, 1], initializer=ones)
        bias = v1.get_variable("out/bias", shape=[1], initializer=zeros)
        predictions = tf.matmul(hidden, weights) + bias
    make = hb.estimator.EstimatorSpec
    if mode == hb.estimator.ModeKeys.PREDICT:
        outputs = {"y": predictions}
        exported = {"serving_default": hb.estimator.export.PredictOutput(outputs)}
        return make(mode, predictions=outputs, export_outputs=exported)
    loss = tf.reduce_mean(tf.square(predictions - labels), name="loss")
    if mode == hb.estimator.ModeKeys.EVAL:
        metrics = {"mae": v1.metrics.mean_absolute_error(labels, predictions)}
        return make(mode, loss=loss, eval_metric_ops=metrics)
    v1.summary.scalar("hidden_mean", tf.reduce_mean(hidden))
    train_op = v1.train.AdamOptimizer(params["learning_rate"]).minimize(
        loss, v1.train.get_or_create_global_step()
    )
    return make(mode, loss=loss, train_op=train_op)


def run_config(**changes: Any) -> Any:
    """A configuration with a seed that writes every step's summaries."""
    return hb.estimator.RunConfig(
        tf_random_seed=7, save_summary_steps=1, log_step_count_steps=None, **changes
    )


def custom(model_dir: Path, **changes: Any) -> Any:
    """The custom Estimator."""
    return hb.estimator.Estimator(
        custom_model_fn,
        str(model_dir),
        run_config(**changes),
        params={"learning_rate": 0.05},
    )


def linear(model_dir: Path) -> Any:
    """A canned linear classifier of three classes with Ftrl."""
    return hb.estimator.LinearClassifier(
        columns(), n_classes=3, model_dir=str(model_dir), config=run_config()
    )


def dnn(model_dir: Path) -> Any:
    """A canned network of the TF2 form, with its default Adagrad."""
    return hb.estimator.DNNClassifier(
        [4], columns(), n_classes=3, model_dir=str(model_dir), config=run_config()
    )


def dnn_v1(model_dir: Path) -> Any:
    """The TF1 form of the canned combined network, with v1 optimizers."""
    return hb.estimator.v1.DNNLinearCombinedRegressor(
        linear_feature_columns=columns(),
        dnn_feature_columns=columns(),
        dnn_hidden_units=[4],
        model_dir=str(model_dir),
        config=hb.estimator.v1.RunConfig(tf_random_seed=7, save_summary_steps=1),
    )


SCENARIOS: dict[str, tuple[Callable[[Path], Any], int]] = {
    "custom": (custom, 0),
    "linear": (linear, 3),
    "dnn": (dnn, 3),
    "dnn_v1": (dnn_v1, 0),
}


def check_validation(
    estimator: Any, train: Any, held_out: Any, steps: int, steps_per_epoch: int
) -> dict[str, Any]:
    """Trains; the last `val_*` are what the Estimator finds after it, which returns."""
    history = tf.keras.callbacks.History()
    hooks = hb.as_hooks(
        history,
        steps_per_epoch=steps_per_epoch,
        validation=(estimator, hb.estimator.EvalSpec(held_out, steps=1)),
    )
    estimator.train(train, steps=steps, hooks=hooks)
    result: dict[str, Any] = estimator.evaluate(held_out, steps=1)
    native = {f"val_{k}": float(v) for k, v in result.items() if k != "global_step"}
    found = {k: v[-1] for k, v in history.history.items() if k.startswith("val_")}
    assert "val_loss" in found
    np.testing.assert_allclose(
        [found[key] for key in native], list(native.values()), 1e-5
    )
    assert len(found) == len(native)
    return result


def events(folder: Path) -> Iterator[tuple[int, str, float | None]]:
    """Step, tag and scalar value of all summaries in a folder's event files."""
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                scalar = value.simple_value if value.HasField("simple_value") else None
                yield event.step, value.tag, scalar


def observe(name: str, model_dir: Path) -> dict[str, Any]:
    """Trains and evaluates one scenario; returns all that must be the same."""
    make, classes = SCENARIOS[name]
    estimator = make(model_dir)
    estimator.train(input_fn(classes), steps=STEPS)
    result = estimator.evaluate(input_fn(classes, repeat=False))
    written = list(events(model_dir))
    reader = tf.train.load_checkpoint(str(model_dir))
    return {
        # If the model has a tensor with the name "loss", the tag is "loss_1".
        "losses": [v for _, tag, v in written if tag in ("loss", "loss_1")],
        "evaluation": {key: float(value) for key, value in sorted(result.items())},
        "variables": {
            key: list(shape)
            for key, shape in sorted(reader.get_variable_to_shape_map().items())
        },
        "train_tags": sorted({tag for _, tag, _ in written}),
        "eval_tags": sorted({tag for _, tag, _ in events(model_dir / "eval")}),
    }
