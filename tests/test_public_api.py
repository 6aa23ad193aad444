"""The public names, and what importing them costs."""

from __future__ import annotations

import ast
import compileall
import importlib
import importlib.metadata
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from plain_python import run_python
from source_trees import sources

import hookbridge as hb


def test_all_is_a_sorted_tuple_of_resolvable_names() -> None:
    assert isinstance(hb.__all__, tuple)
    assert list(hb.__all__) == sorted(hb.__all__)
    for name in hb.__all__:
        assert getattr(hb, name) is not None
        assert name in dir(hb)


@pytest.mark.parametrize(
    "package", ["", ".jobs.callbacks", ".jobs.data", ".jobs.loops"]
)
def test_type_checkers_read_the_names_of_the_table(package: str) -> None:
    module = importlib.import_module(f"hookbridge{package}")
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    (table,) = (node for node in ast.walk(tree) if isinstance(node, ast.Dict))
    read = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert read == ast.literal_eval(table)


@pytest.mark.parametrize("package", ["callbacks", "data", "loops"])
def test_dir_shows_the_public_names(package: str) -> None:
    module = getattr(hb, package)
    assert [n for n in dir(module) if not n.startswith("__")] == sorted(module.__all__)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.one_tensorflow  # TensorFlow 2.15 itself is not imported there
def test_without_docstrings_keras_2_is_not_called_moved() -> None:
    code = "from hookbridge.ground import compat; compat.private('tf_keras_v2')"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "`python -OO` leaves out docstrings, which Keras 2 needs." in last


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_package_without_its_sources_imports(repo_root: Path, tmp_path: Path) -> None:
    """As `python -m compileall -b` leaves it, once the sources are removed."""
    package = tmp_path / "hookbridge"
    skip = shutil.ignore_patterns("__pycache__", "pages")
    shutil.copytree(repo_root / "hookbridge", package, ignore=skip)
    assert compileall.compile_dir(package, legacy=True, quiet=1)
    for source in package.rglob("*.py"):
        source.unlink()
    program = "import hookbridge as hb; print(hb.__file__, hb.as_hooks([]), hb.loops)"
    done = run_python(program, tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(package / "__init__.pyc"))


def test_what_sources_import_comes_with_what_the_package_asks_for() -> None:
    """A canary: TensorFlow itself requires `wrapt` and `h5py`, which we do not name."""
    imported = {
        name.partition(".")[0]
        for nodes in sources().values()
        for node in nodes
        for name in imported_modules(node)
    }
    ours = {"absl", "hookbridge", "numpy", "tensorflow"}
    # pytest itself loads the plugin that needs it.
    of_extras = {"IPython", "pytest", "tensorflow_estimator"}
    others = imported - set(sys.stdlib_module_names) - ours - of_extras
    assert others == {"h5py", "keras", "wrapt"}
    required = importlib.metadata.requires("tensorflow") or []
    # A candidate of TensorFlow asks for a candidate of Keras.
    assert others <= {re.split(r"-nightly|[^\w-]", line)[0] for line in required}


def imported_modules(node: ast.AST) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module]
    return []


@pytest.mark.parametrize(
    "name", ["callbacks", "checkpoints", "data", "loops", "testing"]
)
def test_dir_shows_public_names_alone(name: str) -> None:
    module = getattr(hb, name)
    public = [n for n in dir(module) if not n.startswith("_")]
    assert public == sorted(module.__all__)


def test_an_unknown_name_is_told_the_nearest_ones() -> None:
    words = "no attribute `as_hook`; the nearest public names: as_hooks"
    with pytest.raises(AttributeError, match=words):
        hb.as_hook  # noqa: B018


def test_texts_name_classes_by_their_public_names() -> None:
    """Messages and docstrings: `hb.Validation`, and no path to the room it lies in."""
    rooms = r"`hookbridge\.(?:adapters|ground|insight|jobs|reference)\.[a-z_.]*[A-Z]\w*"
    private = {
        f"{path}: {found}"
        for path, nodes in sources().items()
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in re.findall(rooms, node.value)
    }
    assert not private


def test_every_module_imports_and_keeps_its_promises() -> None:
    modules = ["hookbridge"] + [
        m.name
        for m in pkgutil.walk_packages(hb.__path__, "hookbridge.")
        if not m.name.endswith("__main__")
    ]
    assert "hookbridge.adapters.convert" in modules
    for name in modules:
        module = importlib.import_module(name)
        assert module.__doc__ or not module.__dict__.get("__all__"), name
        for public in getattr(module, "__all__", ()):
            assert hasattr(module, public), f"{name}.{public}"
    # The import of a submodule must not replace a function of the same name.
    found = {name for name in hb.__all__ if isinstance(getattr(hb, name), ModuleType)}
    expected = {"callbacks", "checkpoints", "contrib", "data", "errors"}
    expected |= {"estimator", "legacy", "loops", "old_programs", "testing"}
    assert found == expected


@pytest.mark.slow
def test_import_and_help_import_no_tensorflow(repo_root: Path) -> None:
    program = """
import sys, hookbridge as hb, hookbridge.errors
import hookbridge.ground.lifecycle, hookbridge.ground.compat
from hookbridge.cli import main

def check(*others):
    loaded = {"tensorflow", "tensorflow_estimator", "keras", "tf_keras", *others}
    loaded &= {name.partition(".")[0] for name in sys.modules}
    assert not loaded, loaded

hb.errors.RefusedError, hb.__version__, dir(hb)
check("numpy")
hb.estimator.install  # a name of ours
check()
try:
    assert not main(["--help"])
except SystemExit as e:
    assert not e.code
check()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repo_root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout + done.stderr
