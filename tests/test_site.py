"""What the documentation site has to contain; `make docs` builds it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import yaml

import hookbridge as hb
from hookbridge.ground import lifecycle

DOCS = Path(__file__).resolve().parent.parent / "docs"
REFERENCE = {p.name: p.read_text("utf-8") for p in (DOCS / "reference").glob("*.md")}
EVERY_ERROR = DOCS.parent / "examples" / "every_error.py"
MODULES = ("loops", "callbacks", "data", "testing", "estimator", "old_programs")
# Errors that no example can show: they need another installation or program.
NOT_IN_ONE_PROCESS = {
    "GoneNameError",
    "GuestFailedError",
    "ImportOrderError",
    "MissingExtraError",
    "NeverCalledError",
    "PrivateNameMovedError",
    "TaskLostError",
}
ERRORS = re.findall(r"^\| `(\w+)` \| (.*?) \|", REFERENCE["errors.md"], re.M)
# Modules of TensorFlow itself.
OF_TENSORFLOW = {("estimator", "python"), ("estimator", "v1")}
DOCUMENTED = re.findall(
    r"^<!-- ::: (\w\S*) .*-->$", "\n".join(REFERENCE.values()), re.M
)


def public_names() -> Iterator[str]:
    for name in hb.__all__:
        if not inspect.ismodule(getattr(hb, name)):
            yield f"hookbridge.{name}"
    for module in MODULES:
        for name in getattr(hb, module).__all__:
            if (module, name) not in OF_TENSORFLOW:
                yield f"hookbridge.{module}.{name}"


def value_of(name: str) -> Any:
    """The object, or the method of an object, with a documented name."""
    value: Any = hb
    for part in name.split(".")[1:]:
        if inspect.ismodule(value) and not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    return value


def docstring(value: Any) -> str:
    """The docstring; for a class, together with that of its constructor."""
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value) and "__init__" in vars(value):
        text += "\n" + (inspect.getdoc(value.__init__) or "")
    return text


def test_the_reference_pages_have_the_docstrings_of_today(
    subtests: pytest.Subtests, repo_root: Path
) -> None:
    """`make reference` writes them."""
    script = repo_root / ".ci" / "reference_pages.py"
    pages = runpy.run_path(str(script))
    for name, page in REFERENCE.items():
        with subtests.test(str(name)):
            assert pages["filled"](page) == page, f"{name}: run `make reference`"
            site = pages["for_site"](page)
            assert re.findall(r"^::: (\S+)$", site, re.M) == re.findall(
                r"^<!-- ::: (\w\S*) .*-->$", page, re.M
            )
            assert "<!-- :::" not in site


def test_each_public_name_is_in_the_reference() -> None:
    assert len(DOCUMENTED) == len(set(DOCUMENTED))
    assert set(public_names()) <= set(DOCUMENTED)


def test_each_name_of_the_reference_is_in_an_example() -> None:
    """tests/test_readme.py runs the examples, tests/test_errors.py those of errors."""
    text = "\n".join(page.read_text("utf-8") for page in DOCS.glob("**/*.md"))
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    used = {name for program in programs for name in names_used(ast.parse(program))}
    assert not set(DOCUMENTED) - used
    used = set(names_used(ast.parse(EVERY_ERROR.read_text("utf-8"))))
    shown = {n.rpartition(".")[2] for n in used if n.startswith("hookbridge.errors.")}
    assert not {name for name, _ in ERRORS} - shown - NOT_IN_ONE_PROCESS


def names_used(program: ast.Module) -> Iterator[str]:
    """The dotted names that a program reads, also in its strings that are programs."""
    imported: dict[str, str] = {}
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            for each in node.names:
                imported[each.asname or each.name] = each.name
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                imported[each.asname or each.name] = f"{node.module}.{each.name}"
        elif isinstance(node, (ast.Attribute, ast.Name)):
            first, _, rest = ast.unparse(node).partition(".")
            if isinstance(node.ctx, ast.Load) and first in imported:
                yield f"{imported[first]}.{rest}".rstrip(".")
        elif isinstance(node, ast.Constant) and "\nimport " in str(node.value):
            yield from names_used(ast.parse(str(node.value)))


def arguments_of(name: str) -> Iterator[tuple[str, str, list[str]]]:
    """The callables of a documented name: each with its docstring and its arguments.

    Events are left out: TensorFlow and Keras document their arguments.
    """
    value = value_of(name)
    fields = getattr(value, "_fields", None) or getattr(
        value, "__dataclass_fields__", None
    )
    is_class = inspect.isclass(value)
    if callable(value) and (not is_class or fields or "__init__" in vars(value)):
        yield name, docstring(value), [*(fields or inspect.signature(value).parameters)]
    for method, member in vars(value).items() if is_class else ():
        function = getattr(member, "__func__", member)
        is_public = method[0] != "_" and method not in lifecycle.EVENTS
        if is_public and inspect.isfunction(function):
            given = [*inspect.signature(function).parameters]
            yield f"{name}.{method}", inspect.getdoc(function) or "", given


def test_docstrings_tell_each_argument() -> None:
    missing = [name for name in public_names() if not docstring(value_of(name))]
    for name in DOCUMENTED:
        for place, text, arguments in arguments_of(name):
            for each in {*arguments} - {"self", "cls", "args", "kwargs"}:
                if each[0] != "_" and not re.search(rf"^ *\**{each}:", text, re.M):
                    missing.append(f"{place}: {each}")
    assert not missing


def test_each_error_is_in_the_table_of_errors() -> None:
    told = {name: set(re.findall(r"`(\w+)`", bases)) for name, bases in ERRORS}
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
    pages = {p.relative_to(DOCS).as_posix() for p in DOCS.glob("**/*.md")}
    for_developers = {p for p in pages if p.startswith("decisions/")}
    assert pages - for_developers == listed & pages


def test_the_citation_has_the_version() -> None:
    citation = yaml.safe_load((DOCS.parent / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == hb.__version__
