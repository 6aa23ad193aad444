"""A program whose hooks come from libraries; prints what they saw as JSON."""
import json
import sys

import tensorflow as tf

import like_horovod
import like_optuna
from traceml.integrations.tensorflow import Callback


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.square(w - 1.0)
    tf.summary.scalar("loss", loss)
    step = tf.train.get_global_step()
    op = tf.train.GradientDescentOptimizer(0.25).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=op)


def input_fn():
    return tf.data.Dataset.from_tensors(1.0).repeat()


def places():
    """Where real modules of TensorFlow have names that only `run` puts there."""
    real = sys.modules["tensorflow"]
    found = []
    for name in ("contrib", "examples", "placeholder", "layers", "app", "estimator"):
        for place in ("", "compat.v1", "compat.v2", "compat.v1.compat.v2", "train"):
            module = real
            for part in filter(None, place.split(".")):
                module = getattr(module, part)
            if name in dir(module):
                found.append(".".join(filter(None, (place, name))))
    return found


broadcast, polyaxon = like_horovod.BroadcastGlobalVariablesHook(), Callback()
estimator = like_optuna.Subclass(model_fn, sys.argv[1])
pruning = like_optuna.TensorFlowPruningHook(estimator)
estimator.train(input_fn, hooks=[broadcast, polyaxon, pruning], steps=3)
print(
    json.dumps(
        {
            "runs": broadcast.runs,
            "summaries": len(polyaxon.summaries),
            "head": pruning.head.__name__,
            "metrics": len(pruning.metrics),
            "sees": like_horovod.SEES,
            "places": places(),
        }
    )
)
