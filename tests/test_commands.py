"""The scripts of `make demo` and `make test`: finding Pythons, running suites."""

from __future__ import annotations

import json
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


def test_a_python_that_runs_is_found(
    subtests: pytest.Subtests, repo_root: Path, tmp_path: Path
) -> None:
    """Beside one that does not run, and behind the shims of pyenv."""
    real = f'exec "{sys.executable}" "$@"'
    broken = "echo the shim has no version >&2; exit 127"
    plain, shims = tmp_path / "plain", tmp_path / "pyenv" / "shims"
    executable(plain / f"python{VERSION}", broken)
    executable(plain / "python3", real)
    for name in (f"python{VERSION}", "python3", "python"):
        executable(shims / name, broken)
    executable(shims.parent / "versions" / f"{VERSION}.0" / "bin" / "python", real)
    for folder in (plain, shims):
        with subtests.test(str(folder)):
            done = find_python(repo_root, folder, VERSION)
            assert done.returncode == 0, done.stderr
            assert version_of(done.stdout.strip()) == VERSION
    done = find_python(repo_root, plain, "2.0", "2.1")
    assert done.returncode == 1
    assert done.stderr == "No working Python of version 2.0 2.1 was found.\n"


def test_without_a_python_for_tf_2_15_only_ci_fails(repo_root: Path) -> None:
    # `-o` skips the lint, the site and the environments, which are not tested here.
    make = ["make", "-o", "lint", "-o", "docs", "-o", ".venv/newest/.installed"]
    done = {
        ci: subprocess.run(
            [*make, *flags, "test", "PYTHON_215=", f"CI={ci}"],
            cwd=repo_root,
            capture_output=True,
            text=True,
        )
        for ci, flags in (("true", []), ("", ["-n"]))
    }
    assert done["true"].returncode != 0
    said = "TF 2.15.1 needs Python 3.10 or 3.11 and none was found"
    assert said in done["true"].stdout
    assert "In CI this is a failure." in done["true"].stdout
    assert done[""].returncode == 0, done[""].stderr
    lines = done[""].stdout.splitlines()
    (command,) = (line for line in lines if "suites.py" in line)
    assert "tf-newest=" in command
    assert "tf-2.15.1=" not in command


def test_a_version_that_cannot_be_had_fails_only_if_it_was_asked_for(
    subtests: pytest.Subtests, repo_root: Path, tmp_path: Path
) -> None:
    assert "--of_today" in (repo_root / ".ci" / "run").read_text()
    script = tmp_path / ".ci" / "versions.py"
    executable(tmp_path / ".ci" / "find_python.sh", "exit 1")
    shutil.copy(repo_root / ".ci" / "versions.py", script)
    for flag, code in (("--of_today", 0), ("--only=2.18", 1)):
        with subtests.test(str(flag)):
            command = [sys.executable, str(script), flag]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == code, done.stderr
            assert "could not be installed, and was not tried" in done.stdout


def suites(
    root: Path, folder: Path, environments: tuple[str, ...], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs the suites in a folder, with this Python as each environment."""
    command = [sys.executable, str(root / ".ci" / "suites.py")]
    command += [f"{name}={sys.executable}" for name in environments]
    return subprocess.run(
        [*command, "--", *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )


def test_suites_report_each_environment_and_say_at_the_end_what_failed(
    repo_root: Path, tmp_path: Path
) -> None:
    done = suites(repo_root, tmp_path, ("one", "two"), "--version")
    assert done.returncode == 0
    last = done.stdout.splitlines()[-2:]
    assert [line.split(":")[0] for line in last] == ["one", "two"]
    assert all("passed: pytest " in line for line in last)
    (tmp_path / "test_it.py").write_text(
        "def test_sums():\n    assert 1 + 1 == 3, 'no sum'\n"
    )
    done = suites(repo_root, tmp_path, ("one",), "-q", "test_it.py")
    assert done.returncode == 1
    _, _, end = done.stdout.partition("What failed in one:")
    assert "AssertionError: no sum" in end
    assert "FAILED test_it.py::test_sums" in end
    done = suites(repo_root, tmp_path, ("one",), "nowhere.py")
    assert done.returncode == 1
    assert "FAILED (exit code 4)" in done.stdout.splitlines()[-1]


def test_suites_run_every_folder_by_itself_and_begin_with_what_takes_long(
    subtests: pytest.Subtests, repo_root: Path, tmp_path: Path
) -> None:
    for name, count in (("few", 1), ("some", 2), ("more", 3)):
        (tmp_path / "tests" / name).mkdir(parents=True)
        tests = "".join(f"def test_{i}():\n    pass\n" for i in range(count))
        (tmp_path / "tests" / name / f"test_{count}.py").write_text(tests)
    done = suites(repo_root, tmp_path, ("one",), "-q")
    assert done.returncode == 0, done.stdout
    larger, middle, smaller = done.stdout.splitlines()[-3:]
    assert larger.startswith("one more: passed: 3 passed")
    assert middle.startswith("one some: passed: 2 passed")
    assert smaller.startswith("one few: passed: 1 passed")
    # The next run goes by the durations of this one.
    kept = tmp_path / "build" / "durations.json"
    assert json.loads(kept.read_text())["one"].keys() == {
        "tests/few",
        "tests/more",
        "tests/some",
    }
    kept.write_text(json.dumps({"one": {"tests/some": 1000.0}}))
    # A folder without a chosen test is no failure, if another has one.
    for name, code, more in (("test_2", 0, "passed: 1"), ("nowhere", 1, "FAILED")):
        with subtests.test(str(name)):
            done = suites(repo_root, tmp_path, ("one",), "-q", "-k", name)
            assert done.returncode == code, done.stdout
            longest, larger, smaller = done.stdout.splitlines()[-3:]
            assert longest.startswith("one some: ")
            assert larger.startswith(f"one more: {more}")
            assert smaller.startswith(
                "one few: FAILED" if code else "one few: passed: 1 d"
            )
