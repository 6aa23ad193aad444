"""The message for a missing optional package, and its extra in `setup.py`."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import itertools
import re
import sys
from pathlib import Path

import pytest
from source_trees import sources

from hookbridge import errors
from hookbridge.ground import extras


def promised(root: Path) -> dict[str, list[str]]:
    """The extras of `setup.py`."""
    tree = ast.parse((root / "setup.py").read_text("utf-8"))
    (found,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXTRAS"
    )
    value: dict[str, list[str]] = ast.literal_eval(found)
    return value


def test_the_message_names_an_extra_that_has_the_package(
    repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for module, (distribution, extra) in extras.MODULES.items():
        with pytest.raises(errors.MissingExtraError) as caught:
            extras.check(module, "This test")
        assert str(caught.value) == (
            f"This test needs {distribution}, which is not installed. Install it with "
            f'`pip install "tf-hookbridge[{extra}]"`.'
        )
        required = [name.lower() for name in promised(repo_root)[extra]]
        assert any(name.startswith(distribution.lower()) for name in required)
    # The user may need a larger extra, and has a way out.
    with pytest.raises(
        errors.MissingExtraError, match=r"\[estimator\]\"`\. Or walk\.$"
    ):
        extras.check("tf_keras", "It", extra="estimator", way_out="Or walk.")


def test_what_is_installed_is_imported() -> None:
    extras.check("yaml", "This test")
    assert extras.load("yaml", "This test").safe_load("a: 1") == {"a": 1}


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
