"""The scripts of `make demo` and `make test`: finding Pythons, running suites."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ONE_TENSORFLOW = True
VERSION = "{}.{}".format(*sys.version_info)


def find_python(
    root: Path, folder: Path, *versions: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(root / ".ci" / "find_python.sh"), *versions],
        env={"PATH": f"{folder}{os.pathsep}{os.defpath}", "HOME": str(folder)},
        capture_output=True,
        text=True,
    )


def executable(file: Path, script: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def version_of(python: str) -> str:
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def test_python_that_does_not_run_is_passed_over(
    repo_root: Path, tmp_path: Path
) -> None:
    executable(tmp_path / f"python{VERSION}", "echo not selected >&2; exit 127")
    executable(tmp_path / "python3", f'exec "{sys.executable}" "$@"')
    done = find_python(repo_root, tmp_path, VERSION)
    assert done.returncode == 0, done.stderr
    assert version_of(done.stdout.strip()) == VERSION


def test_pyenv_versions_behind_shims_are_found(repo_root: Path, tmp_path: Path) -> None:
    shims = tmp_path / "pyenv" / "shims"
    broken = "echo the shim has no version >&2; exit 127"
    for name in (f"python{VERSION}", "python3", "python"):
        executable(shims / name, broken)
    real = tmp_path / "pyenv" / "versions" / f"{VERSION}.0" / "bin" / "python"
    executable(real, f'exec "{sys.executable}" "$@"')
    done = find_python(repo_root, shims, VERSION)
    assert done.returncode == 0, done.stderr
    assert version_of(done.stdout.strip()) == VERSION


def test_no_python_is_said_plainly(repo_root: Path, tmp_path: Path) -> None:
    done = find_python(repo_root, tmp_path, "2.0", "2.1")
    assert done.returncode == 1
    assert done.stderr == "No working Python of version 2.0 2.1 was found.\n"


def make(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # `-o` skips the lint, the site and the environments, which are not tested here.
    skipped = ("lint", "docs", ".venv/newest/.installed")
    command = ["make", *(word for each in skipped for word in ("-o", each)), *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


def test_without_a_python_for_tf_2_15_ci_fails(repo_root: Path) -> None:
    done = make(repo_root, "test", "PYTHON_215=", "CI=true")
    assert done.returncode != 0
    assert "TF 2.15.1 needs Python 3.10 or 3.11 and none was found" in done.stdout
    assert "In CI this is a failure." in done.stdout


def test_without_a_python_for_tf_2_15_the_newest_is_tested(repo_root: Path) -> None:
    done = make(repo_root, "-n", "test", "PYTHON_215=", "CI=")
    assert done.returncode == 0, done.stderr
    (command,) = (line for line in done.stdout.splitlines() if "suites.py" in line)
    assert "tf-newest=" in command
    assert "tf-2.15.1=" not in command


def test_a_version_that_cannot_be_had_fails_only_if_it_was_asked_for(
    repo_root: Path, tmp_path: Path
) -> None:
    assert "--of_today" in (repo_root / ".ci" / "run").read_text()
    script = tmp_path / ".ci" / "versions.py"
    executable(tmp_path / ".ci" / "find_python.sh", "exit 1")
    shutil.copy(repo_root / ".ci" / "versions.py", script)
    for flag, code in (("--of_today", 0), ("--only=2.18", 1)):
        command = [sys.executable, str(script), flag]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert "could not be installed, and was not tried" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--version"], 0, "passed: pytest "),
        (["nowhere.py"], 1, "FAILED (exit code 4)"),
    ],
)
def test_suites_report_each_environment(
    arguments: list[str], code: int, words: str, repo_root: Path, tmp_path: Path
) -> None:
    suites = [sys.executable, str(repo_root / ".ci" / "suites.py")]
    environments = [f"one={sys.executable}", f"two={sys.executable}"]
    done = subprocess.run(
        [*suites, *environments, "--", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code
    last = done.stdout.splitlines()[-2:]
    assert [line.split(":")[0] for line in last] == ["one", "two"]
    assert all(words in line for line in last)


def test_suites_say_at_the_end_what_failed(repo_root: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_sums():\n    assert 1 + 1 == 3, 'no sum'\n"
    )
    suites = [sys.executable, str(repo_root / ".ci" / "suites.py")]
    done = subprocess.run(
        [*suites, f"one={sys.executable}", "--", "-q", "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    _, _, end = done.stdout.partition("What failed in one:")
    assert "AssertionError: no sum" in end
    assert "FAILED test_it.py::test_sums" in end


def suites_of_folders(
    root: Path, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs a few tests in three folders, as `make test` does."""
    for name, count in (("few", 1), ("chaos", 2), ("more", 3)):
        (folder / "tests" / name).mkdir(parents=True)
        tests = "".join(f"def test_{i}():\n    pass\n" for i in range(count))
        (folder / "tests" / name / f"test_{count}.py").write_text(tests)
    suites = [sys.executable, str(root / ".ci" / "suites.py"), f"one={sys.executable}"]
    return subprocess.run(
        [*suites, "--", "-q", *arguments], cwd=folder, capture_output=True, text=True
    )


def test_suites_run_every_folder_by_itself_and_begin_with_what_takes_long(
    repo_root: Path, tmp_path: Path
) -> None:
    done = suites_of_folders(repo_root, tmp_path)
    assert done.returncode == 0, done.stdout
    longest, larger, smaller = done.stdout.splitlines()[-3:]
    assert longest.startswith("one chaos: passed: 2 passed")
    assert larger.startswith("one more: passed: 3 passed")
    assert smaller.startswith("one few: passed: 1 passed")


@pytest.mark.parametrize(("name", "code"), [("test_2", 0), ("nowhere", 1)])
def test_a_folder_without_a_chosen_test_is_no_failure(
    name: str, code: int, repo_root: Path, tmp_path: Path
) -> None:
    done = suites_of_folders(repo_root, tmp_path, "-k", name)
    assert done.returncode == code, done.stdout
    _, larger, smaller = done.stdout.splitlines()[-3:]
    assert larger.startswith("one more: FAILED" if code else "one more: passed: 1")
    assert smaller.startswith("one few: FAILED" if code else "one few: passed: 1 d")
