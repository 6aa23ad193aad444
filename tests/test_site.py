"""The documentation site: what it has to hold; `make docs` builds it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import write_command_line
import yaml

import hookbridge as hb

DOCS = Path(__file__).resolve().parent.parent / "docs"
REFERENCE = {p.name: p.read_text("utf-8") for p in (DOCS / "reference").glob("*.md")}
MODULES = ("loops", "callbacks", "data", "testing", "estimator", "migrate")


def public_names() -> Iterator[str]:
    for name in hb.__all__:
        if not inspect.ismodule(getattr(hb, name)):
            yield f"hookbridge.{name}"
    for module in MODULES:
        for name in importlib.import_module(f"hookbridge.{module}").__all__:
            if (module, name) != ("estimator", "v1"):  # TensorFlow's own module
                yield f"hookbridge.{module}.{name}"


def test_each_public_name_is_in_the_reference_and_in_an_example() -> None:
    documented = re.findall(r"^::: (\S+)$", "\n".join(REFERENCE.values()), re.M)
    assert len(documented) == len(set(documented))
    assert set(public_names()) <= set(documented)


@pytest.mark.parametrize("name", sorted(public_names()))
def test_docstring_tells_each_argument(name: str) -> None:
    module, _, last = name.rpartition(".")
    value: Any = getattr(importlib.import_module(module), last)
    text = inspect.getdoc(value) or ""
    assert text, f"{name} has no docstring"
    if not callable(value):
        return
    if inspect.isclass(value) and "__init__" in vars(value):
        text += "\n" + (inspect.getdoc(value.__init__) or "")
    fields = getattr(value, "_fields", None) or getattr(
        value, "__dataclass_fields__", None
    )
    if inspect.isclass(value) and not fields and "__init__" not in vars(value):
        return
    for argument in fields or inspect.signature(value).parameters:
        if not argument.startswith("_") and argument not in ("args", "kwargs"):
            assert re.search(rf"^ *\**{argument}:", text, re.M), f"{name}: {argument}"


def test_each_error_is_in_the_table_of_errors() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", REFERENCE["errors.md"], re.M)
    told = {name: set(re.findall(r"`(\w+)`", bases)) for name, bases in rows}
    found = {
        name: {base.__name__ for base in value.__bases__} - {"HookBridgeError"}
        for name, value in vars(hb.errors).items()
        if inspect.isclass(value)
        and issubclass(value, hb.errors.HookBridgeError)
        and value is not hb.errors.HookBridgeError
    }
    assert told == found


def _arguments() -> Iterator[tuple[str, str]]:
    train, estimator = tf.compat.v1.train, hb.estimator
    for function in (
        train.MonitoredTrainingSession,
        estimator.Estimator.train,
        estimator.Estimator.evaluate,
        estimator.Estimator.predict,
        estimator.TrainSpec.__new__,
        estimator.EvalSpec.__new__,
        tf.keras.Model.fit,
        tf.keras.Model.evaluate,
        tf.keras.Model.predict,
    ):
        for argument in inspect.signature(function).parameters:
            if argument not in ("self", "cls", "kwargs"):
                yield function.__qualname__, argument


def test_everything_of_both_worlds_has_its_place() -> None:
    page = (DOCS / "if-you-had.md").read_text("utf-8")
    told = set(re.findall(r"`([A-Za-z_.]+)", page))
    hooks = {n for n in dir(tf.compat.v1.train) if n.endswith(("Hook", "Listener"))}
    callbacks = {n for n in dir(tf.keras.callbacks) if n[0].isupper()}
    assert not (hooks | callbacks) - told
    assert not {pair for pair in _arguments() if pair[1] not in told}


def test_the_site_has_every_page() -> None:
    text = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", str(yaml.safe_load(text)["nav"])))
    assert {p.relative_to(DOCS).as_posix() for p in DOCS.glob("**/*.md")} <= listed


def test_the_command_line_is_documented_as_it_is() -> None:
    text = write_command_line.PAGE.read_text("utf-8")
    assert text == write_command_line.page(), "run tests/helpers/write_command_line.py"


def test_the_citation_has_the_version() -> None:
    citation = yaml.safe_load((DOCS.parent / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == hb.__version__
