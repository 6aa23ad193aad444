"""An Estimator on a CSV file: train, evaluate and export, on any TensorFlow.

    python examples/estimator_csv.py --model_dir=runs/estimator

The same lines run on TensorFlow 2.15, which has Estimator, and on later versions,
which do not. One list of hooks and Keras callbacks drives the training.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from absl import app, flags

import hookbridge as hb

_DATA = flags.DEFINE_string(
    "data",
    str(Path(__file__).parent / "data" / "digits.csv"),
    "CSV file: a header, numeric columns, an integer label in the last column.",
)
_MODEL_DIR = flags.DEFINE_string("model_dir", None, "Where to train; temporary if None")
_EPOCHS = flags.DEFINE_integer("epochs", 20, "Epochs at most.", lower_bound=1)
BATCH_SIZE = 64


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Features of shape `[N, F]` in 0..1 and labels of shape `[N]`, shuffled."""
    rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    rows = rows[np.random.RandomState(0).permutation(len(rows))]
    features, labels = rows[:, :-1], rows[:, -1].astype(np.int64)
    return features / features.max(), labels


def input_fn(features: np.ndarray, labels: np.ndarray, *, training: bool) -> Any:
    """An `input_fn` over arrays; training data is shuffled and never ends."""

    def make() -> Any:
        data = tf.data.Dataset.from_tensor_slices(({"pixels": features}, labels))
        if training:
            data = data.shuffle(len(labels), seed=1).repeat()
        return data.batch(BATCH_SIZE)

    return make


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """A network with one hidden layer, in plain TF1."""
    v1 = tf.compat.v1
    values = features["pixels"]
    sizes = [values.shape[-1], params["hidden"], params["classes"]]
    for layer in (0, 1):
        values = tf.nn.relu(values) if layer else values
        kernel = v1.get_variable(f"kernel_{layer}", sizes[layer : layer + 2])
        bias = v1.get_variable(
            f"bias_{layer}", sizes[layer + 1], initializer=tf.zeros_initializer()
        )
        values = tf.matmul(values, kernel) + bias
    classes = tf.argmax(values, -1, name="classes")
    outputs = {"classes": classes, "probabilities": tf.nn.softmax(values)}
    if mode == hb.estimator.ModeKeys.PREDICT:
        return hb.estimator.EstimatorSpec(mode, predictions=outputs)
    errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, values)
    loss = tf.reduce_mean(errors, name="loss")
    optimizer = v1.train.AdamOptimizer(params["learning_rate"])
    return hb.estimator.EstimatorSpec(
        mode,
        predictions=outputs,
        loss=loss,
        train_op=optimizer.minimize(loss, v1.train.get_or_create_global_step()),
        eval_metric_ops={"accuracy": v1.metrics.accuracy(labels, classes)},
    )


def main(_: list[str]) -> None:
    """Trains with hooks and callbacks, evaluates, exports and serves."""
    features, labels = read(_DATA.value)
    size, cut = features.shape[1], len(labels) * 4 // 5
    model_dir = _MODEL_DIR.value or tempfile.mkdtemp(prefix="estimator_csv_")
    Path(model_dir).mkdir(parents=True, exist_ok=True)

    estimator = hb.estimator.Estimator(
        model_fn,
        model_dir,
        hb.estimator.RunConfig(tf_random_seed=1, save_summary_steps=20),
        params={"hidden": 32, "classes": int(labels.max()) + 1, "learning_rate": 0.01},
    )
    evaluation = hb.estimator.EvalSpec(
        input_fn(features[cut:], labels[cut:], training=False), steps=None
    )
    hooks = hb.as_hooks(
        [
            tf.compat.v1.train.LoggingTensorHook(["loss"], every_n_iter=100),
            tf.keras.callbacks.CSVLogger(str(Path(model_dir) / "epochs.csv")),
            tf.keras.callbacks.EarlyStopping("val_accuracy", mode="max", patience=3),
        ],
        steps_per_epoch=cut // BATCH_SIZE,
        epochs=_EPOCHS.value,
        validation=(estimator, evaluation),
    )
    estimator.train(input_fn(features[:cut], labels[:cut], training=True), hooks=hooks)
    result = estimator.evaluate(evaluation.input_fn)
    print(f"accuracy {result['accuracy']:.3f} after {result['global_step']} steps")

    # What the exported model is fed with: a batch of raw features.
    receiver = hb.estimator.export.build_raw_serving_input_receiver_fn(
        {"pixels": tf.zeros([1, size])}
    )
    path = estimator.export_saved_model(str(Path(model_dir) / "export"), receiver)
    served = tf.saved_model.load(path.decode()).signatures["serving_default"]
    classes = served(tf.constant(features[cut:]))["classes"]
    print(f"served accuracy {np.mean(classes == labels[cut:]):.3f}")


if __name__ == "__main__":
    app.run(main)
