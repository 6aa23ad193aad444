"""`hookbridge explain` and `hookbridge train` on files that users write."""

from __future__ import annotations

import json
import re
import sys
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


@pytest.fixture
def guests_file(tmp_path: Path) -> str:
    path = tmp_path / "my_guests.py"
    path.write_text(GUESTS)
    return str(path)


def test_explain_prints_the_report(
    guests_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--host=fit", guests_file]) == 0
    text = capsys.readouterr().out
    assert "StopAtStepHook (hook): wrapped" in text
    # It is wrapped if both versions of Keras are in the process.
    assert re.search(r"History \(callback\): (native|wrapped)", text)


def test_explain_as_json_and_of_another_name(
    guests_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["explain", f"{guests_file}:refused", "--host=fit", "--format=json"]
    assert main(arguments) == 2  # something would be refused
    verdicts = [g["verdict"] for g in json.loads(capsys.readouterr().out)["guests"]]
    assert verdicts == ["wrapped", "refused"]


def test_explain_refuses_what_cannot_run_with_remote_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "profiled.py"
    path.write_text(
        "import tensorflow as tf\n"
        "with tf.Graph().as_default():\n"
        f"    hook = tf.compat.v1.train.ProfilerHook(1, output_dir={str(tmp_path)!r})\n"
        "guests = [hook]\n"
    )
    assert main(["explain", "--host=parameter_server", str(path)]) == 2
    text = capsys.readouterr().out
    assert "ProfilerHook" in text and "runs on a worker" in text
    assert main(["explain", "--host=fit", str(path)]) == 0


def _accuracy(output: str) -> float:
    (line,) = (word for word in output.split() if word.startswith("accuracy="))
    return float(line.partition("=")[2])


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_train_in_a_cluster(
    repo_root: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    # Without a chief, worker 0 is the chief of the Estimator.
    examples = repo_root / "examples"
    data = examples / "data" / "digits.csv"
    train = [sys.executable, "-m", "hookbridge", "train", "--max_steps=120"]
    train += [str(examples / "digits_towers.py"), "--header_lines=1"]
    train += [f"--train_files={data}", f"--eval_files={data}"]
    done = fork_server.run(
        *("-m", "hookbridge"),
        *(
            "cluster",
            "--no_chief",
            "--num_workers=2",
            "--num_ps=1",
            "--evaluator",
            "--",
        ),
        *(*train, f"--model_dir={tmp_path}/m"),
    )
    assert done.returncode == 0, done.stderr
    ended = [line for line in done.stdout.splitlines() if "global_step=" in line]
    assert any(line.startswith("[evaluator 0] ") for line in ended), done.stdout
    assert _accuracy(ended[-1]) > 0.6
