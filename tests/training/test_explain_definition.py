"""`hookbridge explain --model_def=FILE --loop=...`, before any training."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookbridge.cli import main

FILE = """
import os
import tensorflow as tf

import hookbridge as hb


def custom_model(): ...
def loss(labels, predictions): ...
def optimizer(): ...
def dataset_fn(dataset, mode): ...


def callbacks():
    return [hb.callbacks.LearningRateScheduler(lambda step: 0.1)]


def hooks():
    v1, folder = tf.compat.v1, os.path.dirname(os.path.abspath(__file__))
    with tf.Graph().as_default():
        profiler = v1.train.ProfilerHook(save_steps=5, output_dir=folder)
        return [profiler, v1.train.StopAtStepHook(num_steps=3)]
"""


# Flags -> the exit code, and what is printed.
EXPLAINED: dict[str, tuple[int, list[str]]] = {
    "--loop=towers": (
        0,
        [
            "LearningRateScheduler (callback): wrapped",
            "runs on the chief and every worker (role 'worker')",
            "costs calls in each batch, the fetch of its logs, and a read of the",
            "StopAtStepHook (hook): native",
            "costs two calls in each run, and what it fetches",
        ],
    ),
    "--loop=fit": (
        0,
        [
            "LearningRateScheduler (callback): native",
            "on_train_batch_begin",
            "ProfilerHook (hook): wrapped",
            "costs two calls in each step; what it fetches is computed with it",
        ],
    ),
    "--loop=fit --num_ps=1": (2, ["ProfilerHook (hook): refused", "runs on a worker"]),
}


def test_each_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(FILE)
    for flags, (code, expected) in EXPLAINED.items():
        assert main(["explain", "--model_def=job.py", *flags.split()]) == code
        text = " ".join(capsys.readouterr().out.split())
        for words in expected:
            assert words in text
