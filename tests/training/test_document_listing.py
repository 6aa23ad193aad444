"""The callbacks of the design that definition files come from, in every loop.

They are written as that design has them: each reads `logs`, `params` and the batch as
its trainer gives them, and none knows of hookbridge.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import DIGITS, ROOT, hookbridge, printed
from fork_server import ForkServer

LISTING = """
import json
import os
import shutil
import sys

sys.path.insert(0, {examples!r})
from digits_keras import *

import tensorflow as tf

K = tf.keras.backend


def note(**values):
    with open(os.environ["NOTES"], "a") as file:
        print(json.dumps(values), file=file)


def rate_of(version):
    return 0.01 if version < 12 else 0.001


def is_good(all_metrics):
    # The rate falls in the third epoch of two workers that update together.
    return len(all_metrics) > 2 and all_metrics[-1]["accuracy"] > 0.8


class Predictions(tf.keras.callbacks.Callback):
    def __init__(self, process):
        self.process = process
        super().__init__()

    def on_predict_batch_end(self, batch, logs=None):
        self.process(logs["predictions"])


class Rate(tf.keras.callbacks.Callback):
    def __init__(self, schedule):
        super().__init__()
        self.schedule = schedule

    def on_train_batch_begin(self, batch, logs=None):
        if not hasattr(self.model.optimizer, "lr"):
            raise ValueError("the optimizer has no lr")
        K.set_value(self.model.optimizer.lr, self.schedule(batch))
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


def callbacks():
    return [
        Predictions(lambda predictions: note(predictions=len(predictions))),
        Rate(rate_of),
        Summaries(),
        Stopper(is_good),
        Exporter(),
        Uploader(os.environ["UPLOADS"]),
    ]


def hooks():
    class Rates(tf.compat.v1.train.SessionRunHook):
        def before_run(self, context):
            return tf.compat.v1.train.SessionRunArgs("learning_rate:0")

        def after_run(self, context, values):
            note(rate=round(float(values.results), 6))

    return [Rates()]
"""
EPOCH = 9  # steps for 300 rows in batches of 32
FLAGS = {
    "fit": ("--loop=fit",),
    "towers": ("--loop=towers",),
    "fit with servers": ("--loop=fit", "--num_workers=2", "--num_ps=1"),
    "towers with servers": ("--loop=towers", "--num_workers=2", "--num_ps=1", "--sync"),
}


@pytest.mark.slow
@pytest.mark.parametrize("loop", FLAGS)
def test_the_listing_runs_as_it_stands(
    loop: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    file, data = tmp_path / "listing.py", tmp_path / "few.csv"
    uploads, notes = tmp_path / "uploads", tmp_path / "notes.jsonl"
    uploads.mkdir()
    file.write_text(LISTING.format(examples=str(ROOT / "examples")))
    rows = DIGITS.read_text().splitlines(keepends=True)
    data.write_text("".join(rows[: 1 + EPOCH * 32]))
    common = (
        f"--model_def={file}",
        f"--model_dir={tmp_path}/model",
        "--header_lines=1",
    )
    environment: Any = {"NOTES": str(notes), "UPLOADS": str(uploads)}
    train = ("train", *common, *FLAGS[loop], "--epochs=12", "--seed=3")
    files = (f"--train_files={data}", f"--eval_files={data}")
    done = hookbridge(fork_server, *train, *files, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in notes.read_text().splitlines()]

    def values(*names: str) -> list[Any]:
        return [tuple(n[k] for k in names) for n in found if names[0] in n]

    steps = int(printed(done)["global_step"])
    assert steps < 12 * EPOCH  # the stopper ended it, at the end of an epoch
    versions = [version for (version,) in values("version")]
    assert sorted(versions) == list(range(steps)) or "servers" in loop
    assert max(versions) >= EPOCH  # it does not begin again in each epoch
    places = values("version", "batch", "size")
    assert {size for _, _, size in places} == {32}
    if "servers" not in loop:
        assert all(batch == version % EPOCH for version, batch, _ in places)
    assert {tuple(names) for (names,) in values("summary")} == {("accuracy", "loss")}
    assert values("uploaded") == [(True,)] and list(uploads.iterdir())
    rates = [rate for (rate,) in values("rate")]
    if "servers" in loop:
        assert set(rates) == {0.01, 0.001}
    else:
        assert rates == [0.01] * 12 + [0.001] * (steps - 12)
    if "servers" in loop:
        return  # a prediction has none

    predict = ("predict", *common, FLAGS[loop][0], f"--predict_files={data}")
    done = hookbridge(fork_server, *predict, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in notes.read_text().splitlines()]
    assert sum(size for (size,) in values("predictions")) == EPOCH * 32
