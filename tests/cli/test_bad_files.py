"""Bad files and flags on the command line: one error, tracebacks of user files only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_job import JOB

from hookbridge.cli import main

# Name -> words of the command, text added to the job, exit code, pattern of stderr.
COMMANDS: dict[str, tuple[list[str], str, int, str]] = {
    "unknown_tensor": (
        ["train"],
        'guests = [v1.train.LoggingTensorHook(["no_such:0"], every_n_iter=1)]',
        1,
        "train: .*no_such:0",
    ),
    "model_fn_raises": (
        ["train"],
        "def model_fn(features, labels, mode):\n    raise KeyError('mine')",
        1,
        r"job\.py\", line \d+, in model_fn\n(.*\n)+.*train: KeyError",
    ),
    "input_fn_raises": (
        ["train"],
        "def train_input_fn():\n    return 1 / 0",
        1,
        r"job\.py\", line \d+, in train_input_fn\n(.*\n)+.*train: ZeroDivisionError",
    ),
    "model_fn_exits": (
        ["train"],
        "def model_fn(features, labels, mode):\n    sys.exit(0)",
        1,
        "train: SystemExit: 0",
    ),
    "model_fn_more_arguments": (
        ["train"],
        "def model_fn(features, labels, mode, more):\n    pass",
        1,
        "train: ValueError: model_fn .* has following not expected args: .*more",
    ),
    "file_exits": (["train"], "sys.exit(3)", 2, "line .* raised SystemExit: 3"),
    "guests_in_themselves": (
        ["explain"],
        "guests = []\nguests.append(guests)",
        2,
        "a list that contains itself",
    ),
    "guests_function": (
        ["explain"],
        "def guests(model):\n    return []",
        2,
        r"`guests` is the function `guests\(model\)`; expected .*without arguments",
    ),
    "seed": (["train", "--seed=1e20"], "", 2, "--seed"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_the_command_line_shows_no_foreign_traceback(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command, *flags), more, code, words = COMMANDS[case]
    job = tmp_path / "job.py"
    job.write_text(f"{JOB}\n{more}\n")
    if command == "train":
        flags += [f"--model_dir={tmp_path / 'model'}", "--max_steps=2"]
    assert main([command, *flags, str(job)]) == code
    shown = capsys.readouterr().err
    assert re.search(words, shown), shown
    assert set(re.findall(r'File "(.*?)"', shown)) <= {str(job)}
    assert not list(tmp_path.glob("model/model.ckpt-*"))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("explain FOLDER", "is a folder"),
        ("doctor /dev/null", "is not a regular file"),
        ("migrate scan nowhere.py", "does not exist"),
        ("cluster --config=FOLDER -- true", "is a folder"),
        ("cluster --config= -- true", "does not exist"),
    ],
)
def test_a_path_that_is_no_file_is_refused_with_its_reason(
    command: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.replace("FOLDER", str(tmp_path)).split()
    assert main(words) == 2
    assert f"which {reason}; expected" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", ["doctor", "migrate scan", "migrate rewrite"])
def test_code_that_is_nested_too_deeply_is_listed_as_not_read(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deep.py"
    path.write_text(f"x = {'-' * 2500}1\n")
    assert main([*command.split(), str(path)]) in (0, 1)
    assert re.search("deep.py.*(nested too deeply|recursion)", capsys.readouterr().out)
