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
