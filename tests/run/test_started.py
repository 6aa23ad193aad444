"""`doctor` says the command that runs a program, and takes a module as `run` does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import ON_NEWEST, launch_fork

from hookbridge.cli import main
from hookbridge.old_programs.scanning import diagnosis, verdict
from hookbridge.tf1_names.target import NEWEST

MODEL = "import tensorflow as tf\nx = tf.placeholder(tf.float32, [])\n"
USE = "with model.tf.Session() as s:\n    print(s.run(model.x, {model.x: 2.0}))\n"
NO_PACKAGE = {"trainer/model.py": MODEL}
PACKAGE = {**NO_PACKAGE, "trainer/__init__.py": ""}
# How the main file, `trainer/task.py`, imports its model, and the words that run it.
LAYOUTS = {
    "beside": ("import model", NO_PACKAGE, "trainer/task.py"),
    "beside_in_package": ("import model", PACKAGE, "trainer/task.py"),
    "from_above": ("from trainer import model", PACKAGE, "-m trainer.task"),
    "relative": ("from . import model", PACKAGE, "-m trainer.task"),
    "relative_in_no_package": ("from . import model", NO_PACKAGE, "-m trainer.task"),
    "path": (
        "import sys\nsys.path.append('.')\nfrom trainer import model",
        NO_PACKAGE,
        "trainer/task.py",
    ),
    "through_another": (
        "import other\nfrom other import model",
        {**PACKAGE, "trainer/other.py": "from trainer import model\n"},
        "-m trainer.task",
    ),
}


def write(folder: Path, statement: str, others: dict[str, str]) -> None:
    for file, text in {**others, "trainer/task.py": f"{statement}\n{USE}"}.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_doctor_says_the_command_that_runs_it(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement, others, words = LAYOUTS[layout]
    write(tmp_path, statement, others)
    monkeypatch.chdir(tmp_path)
    found = diagnosis.diagnose(["trainer/task.py"], NEWEST)
    by_name = words.startswith("-m")
    assert found.command == "hookbridge run" + f" {words}" * by_name
    assert found.folder == str(tmp_path) * by_name
    said = " ".join(verdict.as_text(found).split())
    assert f"`{found.command}`" in said
    if by_name and layout != "through_another":
        same = diagnosis.diagnose([], NEWEST, "trainer.task")
        assert same.command == found.command and not same.left and not same.absent


@ON_NEWEST
@pytest.mark.slow
@pytest.mark.parametrize("layout", sorted({*LAYOUTS} - {"through_another"}))
def test_that_command_runs_and_the_other_does_not(
    layout: str, tmp_path: Path, launcher: ForkServer
) -> None:
    statement, others, words = LAYOUTS[layout]
    write(tmp_path, statement, others)
    done = launch_fork(launcher, *words.split(), cwd=tmp_path)
    assert done.stdout.strip() == "2.0", done.stderr
    if words.startswith("-m"):
        other = launch_fork(launcher, "trainer/task.py", cwd=tmp_path)
        assert other.returncode == 1 and "ImportError" in other.stderr.replace(
            "ModuleNotFoundError", "ImportError"
        )


@ON_NEWEST
@pytest.mark.parametrize("packages", [(), ("en",)])
def test_folders_inside_need_no_init_file(
    packages: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    launcher: ForkServer,
) -> None:
    inside = tmp_path / "en" / "model"
    inside.mkdir(parents=True)
    for package in packages:
        (tmp_path / package / "__init__.py").touch()
    (inside / "model.py").write_text(MODEL)
    (inside / "main.py").write_text(f"from en.model import model\n{USE}")
    (inside / "__main__.py").write_text("print(__spec__.name, __package__)\n")
    monkeypatch.chdir(tmp_path)
    found = diagnosis.diagnose([], NEWEST, "en.model.main")
    assert found.command == "hookbridge run -m en.model.main" and not found.absent
    done = launch_fork(launcher, "-m", "en.model.main", cwd=tmp_path)
    assert done.stdout.strip() == "2.0", done.stderr
    done = launch_fork(launcher, "-m", "en.model", cwd=tmp_path)
    assert done.stdout.strip() == "en.model.__main__ en.model", done.stderr


def test_a_module_of_no_package_is_read_with_m_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "from trainer import model", NO_PACKAGE)
    monkeypatch.chdir(tmp_path)
    by_path = diagnosis.diagnose(["trainer/task.py"], NEWEST)
    monkeypatch.syspath_prepend("")  # as `python -m hookbridge` does
    assert diagnosis.diagnose(["trainer/task.py"], NEWEST) == by_path
    assert by_path.absent == ("trainer",)
    assert "give `doctor -m` the name" in " ".join(verdict.as_text(by_path).split())
    by_name = diagnosis.diagnose([], NEWEST, "trainer.task")
    assert (by_name.absent, by_name.report.files, by_name.left) == ((), 2, 0)


@pytest.mark.parametrize(
    ("statement", "count"),
    [("import model", 0), ("from . import model", 1), ("from .model import x", 1)],
)
def test_packages_above_a_file_are_read_where_python_loads_them(
    statement: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python does for `-m trainer.task`, and not for `trainer/task.py`."""
    gone = "import tensorflow as tf\nspec = tf.contrib.specs.Conv2d\n"
    write(tmp_path, statement, {**NO_PACKAGE, "trainer/__init__.py": gone})
    monkeypatch.chdir(tmp_path)
    found = diagnosis.diagnose(["trainer/task.py"], NEWEST)
    assert found.left == count
    assert diagnosis.diagnose([], NEWEST, "trainer.task").left == 1


@pytest.mark.slow
def test_with_m_no_module_beside_the_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork_server: ForkServer
) -> None:
    write(tmp_path, "import model", PACKAGE)
    # In a process where no other test has imported a module of that name.
    words = ("doctor", "-m", "trainer.task", "--format=json")
    done = fork_server.run("-m", "hookbridge", *words, folder=tmp_path)
    assert json.loads(done.stdout)["absent"] == ["model"], done.stderr
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainer/__main__.py").write_text("from trainer import task\n")
    assert diagnosis.diagnose([], NEWEST, "trainer").report.files == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "Received none; expected files or folders, or `-m`"),
        ("-m pkg.a some.py", "Received both; expected"),
        ("-m pkg.nowhere", "'pkg.nowhere'; expected one whose source is below"),
    ],
)
def test_wrong_words(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *words.split()]) == 2
    assert message in capsys.readouterr().err
