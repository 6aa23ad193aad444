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
    # `-o` skips what is not tested here.
    make = ["make", "-o", "lint", "-o", "docs", "-o", "test-newest"]
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
    assert "-m pytest" not in done[""].stdout


def test_a_version_that_cannot_be_had_fails_only_if_it_was_asked_for(
    subtests: pytest.Subtests, repo_root: Path, tmp_path: Path
) -> None:
    script = tmp_path / ".ci" / "versions.py"
    executable(tmp_path / ".ci" / "find_python.sh", "exit 1")
    shutil.copy(repo_root / ".ci" / "versions.py", script)
    for flag, code in (("--of_today", 0), ("--only=2.18", 1)):
        with subtests.test(str(flag)):
            command = [sys.executable, str(script), flag]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == code, done.stderr
            assert "could not be installed, and was not tried" in done.stdout
