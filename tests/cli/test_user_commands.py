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


BAD = {
    "no_file": (["explain"], "Received no file; expected one model definition file"),
    "missing": (["explain", "nowhere.py"], "'nowhere.py', which does not exist"),
    "no_list": (["explain", "empty.py"], "has no `guests`; expected a list of hooks"),
    "no_host": (
        ["explain", "--host=moon", "empty.py"],
        "--host: received 'moon'; expected one of session, fit, parameter_server",
    ),
    "no_guest": (["explain", "number.py"], "3"),
    "loop_of_a_list": (
        ["explain", "--loop=fit", "empty.py"],
        "empty.py has neither `custom_model` nor `model_fn`",
    ),
    "host_of_a_definition": (
        ["explain", "--model_def=empty.py", "--loop=fit", "--host=fit"],
        "--loop and --host; expected one of them: --loop says",
    ),
    "definition_without_a_loop": (["explain", "--model_def=empty.py"], "no --loop"),
    "raises": (
        ["explain", "raises.py"],
        "The file 'raises.py', line 2, raised KeyError: 'here'; expected a file that",
    ),
    "imports_broken": (
        ["explain", "imports.py"],
        "'imports.py', line 2, raised SyntaxError:",
    ),
    "list_raises": (
        ["explain", "late.py"],
        "late.py', line 2, raised ValueError: two lines; expected",
    ),
    "two_files": (
        ["train", "--model_dir=m", "--model_def=late.py", "empty.py"],
        "Received FILE.py and --model_def; expected one model definition file",
    ),
    "no_function": (
        ["train", "--model_dir=m", "number.py"],
        "has 3 there; expected a function `model_fn",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_gets_one_line_and_exit_code_2(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "number.py").write_text("guests = [3]\nmodel_fn = 3\n")
    (tmp_path / "raises.py").write_text("import os\nos.environ['here']\n")
    (tmp_path / "broken.py").write_text("\n\nguests = [\n")
    (tmp_path / "imports.py").write_text("import os\nimport broken\n")
    (tmp_path / "late.py").write_text(
        "def guests():\n    raise ValueError('two\\nlines')\n"
    )
    arguments, message = BAD[case]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err


def test_train_refuses_a_bad_tf_config_before_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"boss": ["a:1"]}, "task": {}}')
    assert main(["train", f"--model_dir={tmp_path}/m", "job.py"]) == 2
    assert "TF_CONFIG['cluster'] has the job 'boss'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def _accuracy(output: str) -> float:
    (line,) = (word for word in output.split() if word.startswith("accuracy="))
    return float(line.partition("=")[2])


@pytest.mark.slow
def test_train_in_a_cluster(
    repo_root: Path, tmp_path: Path, fork_server: ForkServer
) -> None:
    # Without a chief, worker 0 is the chief of the Estimator.
    examples = repo_root / "examples"
    data = examples / "data" / "digits.csv"
    train = [sys.executable, "-m", "hookbridge", "train", "--max_steps=200"]
    train += [str(examples / "digits_towers.py"), "--header_lines=1"]
    train += [f"--train_files={data}", f"--eval_files={data}"]
    done = fork_server.run(
        *("-m", "hookbridge"),
        *("cluster", "--nochief", "--num_workers=2", "--num_ps=1", "--evaluator", "--"),
        *(*train, f"--model_dir={tmp_path}/m"),
    )
    assert done.returncode == 0, done.stderr
    ended = [line for line in done.stdout.splitlines() if "global_step=" in line]
    assert any(line.startswith("[evaluator 0] ") for line in ended), done.stdout
    assert _accuracy(ended[-1]) > 0.8
