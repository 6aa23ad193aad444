"""The callbacks of the design that definition files come from, in one such file.

They are written as that design has them: each reads `logs`, `params` and the batch as
its trainer gives them, and none knows of hookbridge. `NOTES` and `UPLOADS` are where
they note what they see, and where the weights go.
"""

from __future__ import annotations

from commands import ROOT

LISTING = f"""
import json
import os
import shutil
import sys

sys.path.insert(0, {str(ROOT / "examples")!r})
from digits_keras import *

import tensorflow as tf

K = tf.keras.backend


def note(**values):
    with open(os.environ["NOTES"], "a") as file:
        print(json.dumps({{**values, "process": os.getpid()}}), file=file)


def numbers(logs):
    return {{name: float(value) for name, value in logs.items() if name != "metrics"}}


def rate_of(version):
    return 0.01 if version < 12 else 0.001


def is_good(all_metrics):
    # Some steps after the rate has fallen, however far workers have come by then.
    is_late = len(all_metrics) > 2 and Rate.version >= 16
    return is_late and all_metrics[-1]["accuracy"] > 0.3


class Predictions(tf.keras.callbacks.Callback):
    def __init__(self, process):
        self.process = process
        super().__init__()

    def on_predict_batch_end(self, batch, logs=None):
        self.process(logs["predictions"])


class Rate(tf.keras.callbacks.Callback):
    version = 0

    def __init__(self, schedule):
        super().__init__()
        self.schedule = schedule

    def on_train_batch_begin(self, batch, logs=None):
        if not hasattr(self.model.optimizer, "lr"):
            raise ValueError("the optimizer has no lr")
        K.set_value(self.model.optimizer.lr, self.schedule(batch))
        Rate.version = batch
        note(version=batch, batch=logs["batch"], size=logs["size"])


class Summaries(tf.keras.callbacks.Callback):
    def on_test_end(self, logs=None):
        metrics = logs.get("metrics", None)
        if metrics is None:
            return
        note(summary=sorted(metrics))


class Stopper(tf.keras.callbacks.Callback):
    def __init__(self, stop):
        self.stop = stop
        self.all_metrics = []
        super().__init__()

    def on_test_end(self, logs=None):
        metrics = logs.get("metrics", None)
        if metrics is None:
            return
        self.all_metrics.append(metrics)
        self.model.stop_training = self.stop(self.all_metrics)


class Exporter(tf.keras.callbacks.Callback):
    def on_train_end(self, logs=None):
        self.model.save_weights(self.params["saved_model_path"] + ".weights.h5")


class Uploader(tf.keras.callbacks.Callback):
    def __init__(self, folder):
        self.folder = folder
        super().__init__()

    def on_train_end(self, logs=None):
        shutil.copy(self.params["saved_model_path"] + ".weights.h5", self.folder)
        note(uploaded=True)


class Notes(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        wanted = ("batch_size", "epochs", "saved_model_path", "checkpoint_path")
        note(params={{name: self.params.get(name) for name in wanted}})

    def on_train_batch_end(self, batch, logs=None):
        note(accuracy=float(logs["accuracy"]))

    def on_epoch_end(self, epoch, logs=None):
        note(epoch=epoch, logs=numbers(logs))

    def on_test_begin(self, logs=None):
        note(test=True)


def callbacks():
    return [
        Predictions(lambda predictions: note(predictions=list(predictions.shape))),
        Rate(rate_of),
        Summaries(),
        Stopper(is_good),
        Exporter(),
        Uploader(os.environ["UPLOADS"]),
        Notes(),
    ]


def hooks():
    class Rates(tf.compat.v1.train.SessionRunHook):
        def before_run(self, context):
            return tf.compat.v1.train.SessionRunArgs(["loss:0", "learning_rate:0"])

        def after_run(self, context, values):
            loss, rate = values.results
            note(loss=float(loss), rate=round(float(rate), 6))

    return [Rates()]
"""
