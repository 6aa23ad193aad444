"""The message for a missing optional package, and its extra in `pyproject.toml`."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import itertools
import re
import sys
from pathlib import Path

import pytest
from code_blocks import PAGES
from source_trees import sources

from hookbridge import errors
from hookbridge.ground.imports import extras, installed

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest brings it
    import tomli as tomllib


def promised(root: Path) -> dict[str, list[str]]:
    """The extras of `pyproject.toml`."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return extras


def test_the_message_names_an_extra_that_has_the_package(
    repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for module, (distribution, extra) in extras.MODULES.items():
        with pytest.raises(errors.MissingExtraError) as caught:
            extras.check(module, user="This test")
        assert str(caught.value) == (
            f"This test needs {distribution}, which is not installed. Install it with "
            f'`pip install "tf-hookbridge[{extra}]"`.'
        )
        required = [name.lower() for name in promised(repo_root)[extra]]
        assert any(name.startswith(distribution.lower()) for name in required)


NAMED = re.compile(
    r"(?:tf-hookbridge|pip install \W*\.)\[([\w, ]+)\]"
    r"|extras?(?:\]\([^)]*\))? `([a-z]+)`|`([a-z]+)` extra"
)


def test_each_extra_that_pages_and_messages_name_is_one(repo_root: Path) -> None:
    """In README, docs, benchmarks, and every text of the package."""
    texts = {page: (repo_root / page).read_text("utf-8") for page in PAGES}
    for path, nodes in sources().items():
        constants = (node for node in nodes if isinstance(node, ast.Constant))
        texts[str(path)] = "\n".join(str(constant.value) for constant in constants)
    named = {
        (place, extra.strip())
        for place, text in texts.items()
        for match in NAMED.finditer(text)
        for extra in re.split(",", next(filter(None, match.groups())))
    }
    extras_of_project = promised(repo_root)
    assert len({extra for _, extra in named}) > 5
    assert not [each for each in named if each[1] not in extras_of_project]


@pytest.mark.parametrize(
    ("tensorflow", "command"),
    [
        ((2, 16), 'pip install --no-deps "tf_keras==2.16.*"'),
        ((2, 21), 'pip install --no-deps "tf_keras==2.21.*"'),
        ((2, 22), 'pip install --no-deps "tf_keras==2.21.*"'),
        (None, 'pip install "tf-hookbridge[tensorflow]"'),
    ],
)
def test_tf_keras_leaves_tensorflow_as_it_is(
    tensorflow: tuple[int, int] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message names all that is missing, and a way out."""
    monkeypatch.setattr(installed, "tensorflow", lambda: tensorflow)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(errors.MissingExtraError) as caught:
        modules = ("tensorflow_estimator", "tf_keras")
        extras.check(*modules, user="It", way_out="Or walk.")
    assert str(caught.value) == (
        "It needs tensorflow-estimator and tf_keras, which are not installed. Install "
        f'them with `pip install "tf-hookbridge[estimator]"` and `{command}`. Or walk.'
    )


def test_no_extra_brings_another_tensorflow(repo_root: Path) -> None:
    """tf_keras requires one TensorFlow: only who has none may ask for it."""
    asked = promised(repo_root)
    asked.pop("tensorflow")
    names = {re.split(r"[^\w-]", line)[0] for lines in asked.values() for line in lines}
    assert not names & {"tf_keras", "tf-keras", "tensorflow"}


def test_what_is_installed_is_imported() -> None:
    extras.check("yaml", user="This test")
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
    """wrapt and h5py are not listed in `pyproject.toml`: TensorFlow brings them."""
    others = imported_packages() - set(sys.stdlib_module_names)
    # pytest alone imports our plugin for it.
    others -= {"numpy", "absl", "tf_keras", "pytest", *extras.MODULES}
    brought = importlib.metadata.requires("tensorflow") or []
    # A candidate of TensorFlow asks for a candidate of Keras.
    names = {re.split(r"-nightly|[^\w-]", line)[0] for line in brought}
    names = {name.replace("-", "_") for name in names}
    # Protocol buffers' package has another name than its distribution.
    names |= {"google"} if "protobuf" in names else set()
    assert others <= names, others - names
