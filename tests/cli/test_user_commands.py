"""`hookbridge explain` and `hookbridge train` on files that users write."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fork_server import ForkServer

from hookbridge.cli import main

GUESTS = """
import tensorflow as tf
guests = [tf.compat.v1.train.StopAtStepHook(3), tf.keras.callbacks.History()]
def refused():
    return [tf.compat.v1.train.StopAtStepHook(3),
            type('GracefulShutdownHook', (tf.compat.v1.train.SessionRunHook,),
                 {'__module__': 'tensorflow.python.tpu'})()]
"""


def test_explain_prints_a_report_or_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my_guests.py"
    path.write_text(GUESTS)
    assert main(["explain", "--host=fit", str(path)]) == 0
    text = capsys.readouterr().out
    assert "StopAtStepHook (hook): wrapped" in text
    # It is wrapped if both versions of Keras are in the process.
    assert re.search(r"History \(callback\): (native|wrapped)", text)
    arguments = ["explain", f"{path}:refused", "--host=fit", "--format=json"]
    assert main(arguments) == 2  # something would be refused
    verdicts = [g["verdict"] for g in json.loads(capsys.readouterr().out)["guests"]]
    assert verdicts == ["wrapped", "refused"]


DEFINITION = """
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
    "--loop=session": (
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


@pytest.mark.usefixtures("working_folder")
def test_explain_a_definition_file_in_each_loop(
    subtests: pytest.Subtests, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.py").write_text(DEFINITION)
    for flags, (code, expected) in EXPLAINED.items():
        with subtests.test(str(flags)):
            assert (
                main(["explain", "--details", "--model_def=job.py", *flags.split()])
                == code
            )
            text = " ".join(capsys.readouterr().out.split())
            for words in expected:
                assert words in text


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_train_in_a_cluster(
    repo_root: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    # Without a chief, worker 0 is the chief of the Estimator.
    examples = repo_root / "examples"
    data = examples / "data" / "digits.csv"
    train = [fork_server.python, "-m", "hookbridge", "train", "--max_steps=20"]
    train += [str(examples / "digits_towers.py"), "--header_lines=1"]
    train += [f"--train_files={data}", f"--eval_files={data}"]
    cluster = ["--no_chief", "--num_workers=1", "--num_ps=1", "--evaluator"]
    words = ["cluster", *cluster, "--", *train, f"--model_dir={tmp_path}/m"]
    done = fork_server.run("-m", "hookbridge", *words)
    assert done.returncode == 0, done.stderr
    ended = [line for line in done.stdout.splitlines() if "global_step=" in line]
    assert any(line.startswith("[evaluator 0] ") for line in ended), done.stdout
    accuracy = re.search(r"accuracy=(\S+)", ended[-1])
    assert accuracy is not None and float(accuracy[1]) > 0.6
