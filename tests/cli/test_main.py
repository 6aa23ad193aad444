"""The command line before any TensorFlow: help, bad flags, exit codes."""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from one_line import one_line_of_error

import hookbridge as hb
from hookbridge.cli import COMMANDS, command, main
from hookbridge.ground import compat

ONE_TENSORFLOW = True
# Command line -> a part of the one line that says what is wrong.
BAD = {
    "": "no command given",
    "demmo": "unknown command 'demmo'; the nearest: `demo`.",
    "migrate": "migrate: no command given; expected one of: scan",
    "demo --epoch=3": "unrecognized arguments: --epoch=3; did you mean `--epochs`",
    "demo --epochs=0": "--epochs: received 0; expected a whole",
    "demo --epochs": "--epochs: expected one argument",
    "demo please": "unrecognized arguments: please",
    "demo --batch_size=32 --num_towers=3": "expected a multiple of 6",
    "cluster --no_chief=1": "--no_chief: ignored explicit argument '1'",
    "demo --format=xml": "--format: invalid choice: 'xml' (choose from ",
    "migrate scan --write a.py": "unrecognized arguments: --write",
    "migrate rewrite --format=json a.py": "rewrite: unrecognized arguments: --format",
    "migrate rewrite --check --write a.py": "--write and --check; expected one of them",
    "migrate rewrite --list-rules --write": "--list_rules and --write; expected one of",
    "demo --batch_size=4000": "expected at most 1445",
    "cluster": "expected one after `--`",
    "cluster -- no-such-program": "cannot be found or run",
    "cluster --no_chief --num_workers=0 -- true": "a chief or a worker",
    "cluster --num_workers=-1 -- true": "--num_workers: received -1",
    "cluster --num_workers=99999999 -- true": "num_workers=99999999",
    "cluster --grace_secs=nan": "grace_secs: received nan",
    "explain": "the following arguments are required: file",
    "explain nowhere.py": "'nowhere.py', which does not exist",
    "explain empty.py": "has no `guests`; expected a list of hooks",
    "explain --host=moon empty.py": "invalid choice: 'moon' (choose from ",
    "explain number.py": "3",
    "explain --loop=fit empty.py": "empty.py has neither `custom_model` nor `model_fn`",
    "explain --model_def=empty.py --loop=fit --host=fit": "--loop and --host; expected",
    "explain --model_def=empty.py": "has no `guests`",
    "explain raises.py": "'raises.py', line 2, raised KeyError: 'here'; expected a ",
    "explain imports.py": "'imports.py', line 2, raised SyntaxError:",
    "explain trains.py": (
        "trains.py has no `guests`, so it was not run; it has `hooks`."
    ),
    "explain trains.py:hooks": (
        "trains.py, line 9: importing the file would run `estimator.train(...)` "
        "(line 5); expected a file that only defines things. Put the work into"
    ),
    "train --model_dir=. trains.py": "has no `custom_model` or `model_fn`, so it was",
    "explain late.py": "late.py', line 2, raised ValueError: two lines; expected",
    "train --model_dir=m --model_def=late.py empty.py": "unrecognized arguments: em",
    "train --model_dir=. number.py": "Received `model_fn=3` of type `int`",
}
# Files that the commands may name.
FILES = {
    "empty.py": "",
    "number.py": "guests = [3]\nmodel_fn = 3\n",
    "raises.py": "import os\nos.environ['here']\nguests = []\n",
    "broken.py": "\n\nguests = [\n",
    "imports.py": "import os\nimport broken\nguests = []\n",
    "trains.py": "hooks = []\n\n\ndef train(estimator):\n    estimator.train(1)\n\n\n"
    "if True:\n    train(None)\nraise SystemExit('the file was run')\n",
    "late.py": "def guests():\n    raise ValueError('two\\nlines')\n",
}


def test_bad_input_gets_one_line_and_exit_code_2(
    subtests: pytest.Subtests,
    working_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in FILES.items():
        (working_folder / name).write_text(text)
    for words, message in BAD.items():
        with subtests.test(str(words)):
            assert main(words.split()) == 2, words
            assert message in one_line_of_error(capsys)
            # Refused before anything is written.
            assert {p.name for p in working_folder.iterdir()} - {
                "__pycache__"
            } == FILES.keys()


def test_a_bad_directory_gets_one_line_and_is_left_alone(
    subtests: pytest.Subtests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "session").mkdir()
    thesis = tmp_path / "session" / "thesis.txt"
    thesis.write_text("years of work")
    for place, message in (
        (tmp_path, "holds files of something else"),
        (thesis / "run", "cannot be written (not a directory)"),
    ):
        with subtests.test(str(place)):
            assert main(["demo", f"--model_dir={place}"]) == 2
            assert message in one_line_of_error(capsys)
    assert thesis.read_text() == "years of work"


# The commands with `--format=json`.
WITH_RESULTS = {"demo", "train", "evaluate", "predict", "doctor", "explain"}
WITH_RESULTS |= {"migrate scan", "compare"}


def test_help(subtests: pytest.Subtests, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command and flag; each help fits a screen and shows an example."""
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        with subtests.test(str(name)):
            assert f"  {name} " in text
            assert main([name, "--help"]) == 0
            lines = capsys.readouterr().out.splitlines()
            assert lines[0].startswith(f"usage: hookbridge {name}")
            assert len(lines) <= 50 and max(map(len, lines)) <= 92
            assert any(
                line.startswith(f"example: hookbridge {name} ") for line in lines
            )
            told = {w.strip("[],") for line in lines for w in line.split()[:1]}
            assert {f"--{flag}" for flag in command.parser_of(name)[1].flags} <= told
            assert ("--format" in told) == (name in WITH_RESULTS)
    assert main(["migrate", "--help"]) == 0
    assert "migrate rewrite" in capsys.readouterr().out


def test_flags_are_written_with_dashes_or_underscores(
    subtests: pytest.Subtests,
) -> None:
    _, parser = command.parser_of("migrate rewrite")
    for words in (
        ["--list-rules", "--target=2.15"],
        ["--list_rules", "--no-diff", "--check", "--no_check", "--target", "2.15"],
    ):
        with subtests.test(str(words)):
            values = parser.values(words)
            assert (values.list_rules, values.diff, values.target) == (
                True,
                False,
                "2.15",
            )
            assert not values.check


def test_a_command_line_after_the_flags_stays_as_it_is(
    subtests: pytest.Subtests,
) -> None:
    _, parser = command.parser_of("run")
    own = ["--v1", "--keras", "2", "--steps-per-epoch=5"]
    rest = ["job.py", "", "--keras=3", "--v1", "--no-x"]
    values = parser.values([*own, *rest])
    assert (values.v1, values.keras, values.steps_per_epoch) == (True, "2", 5)
    assert values.rest == rest
    values = parser.values(["-m", "job", "-h", "--", "x"])
    assert values.m and values.rest == ["job", "-h", "--", "x"]
    for words in (["--", "--odd.py"], ["--v1", "--", "--odd.py"]):
        with subtests.test(str(words)):
            assert parser.values(words).rest == ["--odd.py"]


def test_version_tells_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    told = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert told["hookbridge"] == hb.__version__
    assert told["tensorflow"] == metadata.version("tensorflow")
    assert told["python"] == platform.python_version()


def test_tensorflow_is_found_under_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "empty")])
    with pytest.raises(hb.errors.MissingExtraError, match="TensorFlow is not inst"):
        compat.installed_tf_version()
    name, version = "tf_nightly", "2.99.0.dev20260101"
    folder = tmp_path / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert compat.installed_tf_version() == (2, 99)
    assert main(["--version"]) == 0
    assert f"{name.replace('_', '-')} {version}\n" in capsys.readouterr().out


@pytest.mark.slow
def test_what_needs_tensorflow_says_so_in_one_line(
    subtests: pytest.Subtests, repo_root: Path, tmp_path: Path
) -> None:
    """With what the package requires, and no TensorFlow."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("numpy", "absl"):
        folder = Path(str(importlib.import_module(name).__file__)).parent
        for each in (folder, folder.with_name(f"{name}.libs")):
            (packages / each.name).symlink_to(each)
    (tmp_path / "old.py").write_text("import tensorflow as tf\nguests = [tf.Session]\n")
    example = repo_root / "examples" / "digits_keras.py"
    to = f"--model_dir={tmp_path / 'runs'}"
    places = os.pathsep.join(map(str, (packages, repo_root)))
    for words, code in {
        "migrate scan old.py": 0,
        "doctor old.py": 0,
        "docs codes#ESTIMATOR": 0,
        "docs codes#estimator": 0,
        "run old.py": 2,
        "record --to=reference old.py": 2,
        "explain old.py": 2,
        f"explain {example} --loop=fit": 2,
        f"demo {to}": 2,
        f"train {example} {to} --loop=fit --train_files=a.csv": 2,
        f"evaluate {example} {to} --loop=fit": 2,
        f"predict {example} {to} --loop=fit": 2,
    }.items():
        with subtests.test(words):
            done = subprocess.run(
                [sys.executable, "-S", "-m", "hookbridge", *words.split()],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": places},
                capture_output=True,
                text=True,
            )
            assert done.returncode == code, done.stderr
            lines = done.stderr.splitlines()
            assert len(lines) == code // 2
            assert all("TensorFlow is not installed. Install" in one for one in lines)


@pytest.mark.slow
def test_help_and_bad_flags_do_not_import_tensorflow(repo_root: Path) -> None:
    code = (
        "import sys\n"
        "from hookbridge.cli import COMMANDS, command, main\n"
        "codes = [main(['--help']), *(main([n, '--help']) for n in COMMANDS),\n"
        "         main(['demo', '--epochs=0'])]\n"
        "print('tensorflow' in sys.modules, codes, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo_root, capture_output=True, text=True
    )
    codes = [0] * (1 + len(COMMANDS)) + [2]
    assert done.stderr.splitlines()[-1] == f"False {codes}"
