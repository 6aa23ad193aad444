"""One package from two folders: link, `package_dir`, wheel and sdist agree."""

from __future__ import annotations

import ast
import importlib.metadata
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from source_trees import sources

import hookbridge as hb
from hookbridge import extras

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
    mapped = setup_constant(repo_root, "MAP")
    assert os.readlink(link) == os.path.join("..", "adapters")
    assert mapped == {"hookbridge.adapters": "adapters"}
    assert link.resolve() == (repo_root / mapped["hookbridge.adapters"]).resolve()


def test_version_is_that_of_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.startswith(f"tf_hookbridge-{hb.__version__}-py3-")


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


def install(environment: Path, *words: str) -> str:
    """What pip says when it installs with this environment's packages in sight."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", environment], check=True
    )
    (target,) = environment.glob("lib/python*/site-packages")
    (target / "known.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = str(environment / "bin" / "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index"]
    flags = ["--no-build-isolation", "--no-deps"]
    done = subprocess.run([*command, *flags, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_line_of_an_error_is_right_for_a_wheel(built: Path, tmp_path: Path) -> None:
    """pip finds the installed package, and asks no index for it."""
    (wheel,) = built.glob("*.whl")
    install(tmp_path, str(wheel))
    line = shlex.split(extras.install("contrib").strip("`"))
    said = install(tmp_path, *line[2:])
    assert "Requirement already satisfied: tf-hookbridge[contrib]" in said


def test_no_second_tensorflow_is_asked_for(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
        lines = archive.read(name).decode().splitlines()
    needed = [line for line in lines if line.startswith("Requires-Dist")]
    always = {line.split(": ")[1] for line in needed if "extra ==" not in line}
    assert always == {"numpy", "absl-py"}


def imported_packages() -> set[str]:
    """Top-level packages that the sources import anywhere, without our own."""
    names: set[str] = set()
    for node in itertools.chain.from_iterable(sources().values()):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - {"hookbridge"}


def test_imports_come_with_tensorflow_or_with_an_extra() -> None:
    """wrapt and h5py are not listed in `setup.py`: TensorFlow brings them."""
    others = imported_packages() - set(sys.stdlib_module_names)
    others -= {"numpy", "absl", *extras.MODULES}
    brought = importlib.metadata.requires("tensorflow") or []
    names = {re.split(r"[^\w-]", line)[0].replace("-", "_") for line in brought}
    # Protocol buffers' package has another name than its distribution.
    names |= {"google"} if "protobuf" in names else set()
    assert others <= names, others - names


def test_type_checkers_find_an_editable_install(
    repo_root: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    for name in ("hookbridge", "adapters", "docs", "examples"):
        shutil.copytree(repo_root / name, source / name, symlinks=True)
    for name in ("setup.py", "README.md", "LICENSE", "pyproject.toml"):
        shutil.copy(repo_root / name, source)
    install(tmp_path / "env", "--editable", str(source))
    # A line with the path of the sources is what pyright, mypy and editors read.
    files = (tmp_path / "env").glob("lib/python*/site-packages/*hookbridge*.pth")
    assert str(source) in [line for f in files for line in f.read_text().splitlines()]
    code = "import hookbridge.adapters.convert as c; print(c.__file__)"
    found = subprocess.run(
        [tmp_path / "env" / "bin" / "python", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert found.stdout.startswith(str(source)), found.stderr


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
