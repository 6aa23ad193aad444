"""One package from two folders: link, `package_dir`, wheel and sdist agree."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import hookbridge as hb

pytestmark = pytest.mark.slow


def setup_constant(root: Path, name: str) -> Any:
    """The value of a constant or a keyword argument in `setup.py`."""
    tree = ast.parse((root / "setup.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
        if isinstance(node, ast.keyword) and node.arg == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"setup.py has no {name}")


def packages_on_disk(root: Path) -> set[str]:
    """Import packages found in the two source folders."""
    inner = {
        ".".join(file.parent.relative_to(root).parts)
        for file in (root / "hookbridge").glob("**/__init__.py")
        if "adapters" not in file.parent.relative_to(root).parts
    }
    outer = {
        ".".join(("hookbridge", *file.parent.relative_to(root).parts))
        for file in (root / "adapters").glob("**/__init__.py")
    }
    return inner | outer


@pytest.fixture(scope="module")
def built(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of the checkout and the wheel built from it."""
    work = tmp_path_factory.mktemp("package")
    source = work / "source"
    skip = shutil.ignore_patterns(
        ".*cache", ".git", ".venv", "__pycache__", "*.egg-info", "build", "dist", "runs"
    )
    shutil.copytree(repo_root, source, symlinks=True, ignore=skip)
    # The environment has the build backend, so no isolation and no network is needed.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(work)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return work


def test_setup_lists_every_package(repo_root: Path) -> None:
    assert set(setup_constant(repo_root, "PACKAGES")) == packages_on_disk(repo_root)


def test_link_and_map_lead_to_the_same_folder(repo_root: Path) -> None:
    link = repo_root / "hookbridge" / "adapters"
    mapped = setup_constant(repo_root, "package_dir")
    assert os.readlink(link) == os.path.join("..", "adapters")
    assert mapped == {"hookbridge.adapters": "adapters"}
    assert link.resolve() == (repo_root / mapped["hookbridge.adapters"]).resolve()


def test_version_is_that_of_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.startswith(f"hookbridge-{hb.__version__}-py3-")


def test_wheel_holds_every_module_once(repo_root: Path, built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if not n.split("/")[0].endswith("-info")}
    expected = {
        file.relative_to(repo_root).as_posix()
        for file in (repo_root / "hookbridge").glob("**/*.py")
        if "adapters" not in file.relative_to(repo_root).parts
    } | {
        f"hookbridge/{file.relative_to(repo_root).as_posix()}"
        for file in (repo_root / "adapters").glob("**/*.py")
    }
    assert {n for n in names if n.endswith(".py")} == expected
    assert "hookbridge/py.typed" in names
    assert {n.split("/")[0] for n in names} == {"hookbridge"}


def test_wheel_holds_the_digits_of_the_example(repo_root: Path, built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if n.startswith("hookbridge/demo/data/")}
        packed = archive.read("hookbridge/demo/data/digits.csv")
    example = repo_root / "examples" / "data"
    assert names == {f"hookbridge/demo/data/{f.name}" for f in example.iterdir()}
    assert packed == (example / "digits.csv").read_bytes()


def test_wheel_holds_the_pages_that_errors_name(repo_root: Path, built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    docs = repo_root / "docs"
    with zipfile.ZipFile(wheel) as archive:
        packed = {
            name.removeprefix("hookbridge/cli/pages/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith("hookbridge/cli/pages/")
        }
    pages = {p.relative_to(docs).as_posix(): p for p in docs.rglob("*.md")}
    assert packed == {name: page.read_bytes() for name, page in pages.items()}


def test_sdist_has_what_the_commands_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {n.split("/", 1)[1] for n in archive.getnames() if "/" in n}
    for needed in (
        "LICENSE",
        "Makefile",
        ".ci/find_python.sh",
        "adapters/convert.py",
        "tests/test_packaging.py",
    ):
        assert needed in names


def test_bare_name_adapters_is_refused(repo_root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import adapters"],
        cwd=repo_root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "Import it as `hookbridge.adapters`" in done.stderr
