"""The public names, and what importing them costs."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import hookbridge as hb


def run_fresh(code: str, root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True
    )


def test_all_is_a_sorted_tuple_of_resolvable_names() -> None:
    assert isinstance(hb.__all__, tuple)
    assert list(hb.__all__) == sorted(hb.__all__)
    for name in hb.__all__:
        assert getattr(hb, name) is not None
        assert name in dir(hb)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="no attribute `as_hook`; public names: "):
        hb.as_hook  # noqa: B018


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
    expected |= {"estimator", "loops"}
    assert found == expected


@pytest.mark.slow
def test_import_does_not_import_tensorflow(repo_root: Path) -> None:
    done = run_fresh(
        "import sys, hookbridge, hookbridge.errors, hookbridge.lifecycle,"
        " hookbridge.compat\n"
        "hookbridge.errors.RefusedError, hookbridge.__version__, dir(hookbridge)\n"
        "loaded = {'tensorflow', 'keras', 'tf_keras', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported {loaded}' if loaded else 0)",
        repo_root,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_help_does_not_import_tensorflow(repo_root: Path) -> None:
    done = run_fresh(
        "import sys\n"
        "from hookbridge.cli import main\n"
        "try:\n"
        "    code = main(['--help'])\n"
        "except SystemExit as e:\n"
        "    code = e.code\n"
        "loaded = {'tensorflow', 'keras', 'tf_keras'} & set(sys.modules)\n"
        "sys.exit(f'exit code {code}, imported {loaded}' if code or loaded else 0)",
        repo_root,
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout + done.stderr
