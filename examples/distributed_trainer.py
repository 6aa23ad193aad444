"""Sequences in CSV lists, towers in each process, and workers that update together.

    python examples/strokes.py runs/strokes
    hookbridge train examples/distributed_trainer.py --loop=estimator \
        --num_workers=3 --num_ps=1 --num_towers=2 --batch_per_tower --sync \
        --train_files=runs/strokes/train.csv --eval_files=runs/strokes/eval.csv \
        --train_steps=40 --job-dir=runs/trainer

A chief and three workers each fetch a batch for each of their towers; a parameter
server holds the variables. One update takes the mean over all eight batches. At
--train_steps all processes end, and the chief evaluates. The same command without
--num_workers, --num_ps and --sync trains in one process.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import tensorflow as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from digits_towers import classifier
from strokes import CLASSES, input_fn

__all__ = ["input_fn", "model_fn", "params"]

NUMBERS = 4  # of a stroke
# With --sync the command sets `replicas_to_aggregate`: the workers in one update.
params = {"hidden": 64, "learning_rate": 0.02, "replicas_to_aggregate": None}


def model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
    """Two layers for each stroke, their mean over the sequence, and one more layer."""
    v1 = tf.compat.v1
    size = params["hidden"]

    def dense(values: Any, layer: str, inputs: int, units: int) -> Any:
        with v1.variable_scope(layer):
            kernel = v1.get_variable("kernel", [inputs, units])
            bias = v1.get_variable("bias", [units], initializer=v1.zeros_initializer())
        return tf.tensordot(values, kernel, 1) + bias

    hidden = tf.nn.relu(dense(features, "stroke", NUMBERS, size))
    hidden = tf.nn.relu(dense(hidden, "hidden", size, size))
    # A batch is padded with zeros, and no stroke has the length 0.
    is_stroke = tf.cast(features[:, :, 2:3] > 0, tf.float32)
    mean = tf.reduce_sum(hidden * is_stroke, 1) / tf.reduce_sum(is_stroke, 1)
    logits = dense(mean, "logits", size, CLASSES)
    return classifier(logits, labels, mode, params, config)
