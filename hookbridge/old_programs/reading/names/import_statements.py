"""What import statements, and calls that import, name; one spelling for each name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hookbridge.tf1_names import contrib_names
from hookbridge.tf1_names.outcome import V1
from hookbridge.tf1_names.syntax import keywords, last_name, text_of

# Nested copies of the same module, as `tf.compat.v1.compat.v1`: the last one counts.
_COPIES = re.compile(r"^(compat\.v[12]\.)+(?=compat\.v[12](\.|$))")
# Where TensorFlow had its Keras until 1.3.
_FIRST_KERAS = re.compile(r"^contrib\.keras\.python(\.keras)?(?=\.|$)")
_PRIVATE = ("python.", "core.")
STATEMENTS = frozenset({ast.Import, ast.ImportFrom})
# Functions that import the module of a name.
_LOADERS = ("import_module", "__import__")


def canonical(dotted: str) -> str:
    """One spelling for a dotted name: `tf.X`, `tf.compat.v1.X`, or unchanged.

    `tensorflow` and `tensorflow.compat.v2` become `tf`, `tensorflow.contrib` becomes
    `tf.contrib`; `tensorflow.python`, `tensorflow.core` and other packages stay.
    """
    root, _, inside = dotted.partition(".")
    if root != "tensorflow" or f"{inside}.".startswith(_PRIVATE):
        return dotted
    inside = _COPIES.sub("", inside)
    of_v1 = inside.removeprefix("compat.v1.")
    if f"{of_v1}.".startswith(_PRIVATE):
        return f"tensorflow.{of_v1}"  # `tf.python`, where `tf` is now v1
    if inside.startswith("compat.v1.contrib"):
        inside = inside[len("compat.v1.") :]  # `tf.contrib`, where `tf` is now v1
    if inside == "compat.v2" or inside.startswith("compat.v2."):
        inside = inside[len("compat.v2.") :]
    inside = _FIRST_KERAS.sub("contrib.keras", inside)
    if inside.startswith("contrib.") and ".python." in inside:
        inside = _public_contrib(inside)
    return f"tf.{inside}" if inside else "tf"


def _public_contrib(rest: str) -> str:
    """Return `contrib.learn.RunConfig` for `contrib.learn.python.learn...RunConfig`.

    A class of a file that is public itself stays in it: `slim.tfexample_decoder.Image`.
    So does one that the file alone had.
    """
    package, _, inside = rest.partition(".python.")
    if ".nets." in inside:
        return f"{package}.nets.{inside.partition('.nets.')[2]}"
    parts = inside.split(".")
    classes = [number for number, part in enumerate(parts) if part[:1].isupper()]
    if not classes:
        return rest
    first = classes[0]
    area = package.removeprefix("contrib.")
    if f"{area}.python.{'.'.join(parts[: first + 1])}" in contrib_names.NAMES:
        return rest
    parent = f"{area}.{parts[first - 1]}" if first else area
    if parts[first] in contrib_names.names().get(parent, ()):
        return f"contrib.{parent}.{'.'.join(parts[first:])}"
    is_last = 0 < first == len(parts) - 1
    if is_last and contrib_names.in_same_file(area, parts[first - 1], parts[first]):
        return rest
    return f"{package}.{'.'.join(parts[first:])}"


def as_v1(name: str) -> str:
    """Return a name of `tf` as the name of `tf.compat.v1`; other names unchanged."""
    root, _, inside = name.partition(".")
    if root != "tf" or inside.partition(".")[0] in ("compat", "contrib", "examples"):
        return name
    return f"{V1}.{inside}" if inside else V1


def module_name(base: str | None, level: int, package: Sequence[str]) -> str:
    """Return the absolute name of `..base` in a package with these parts."""
    above = list(package[: len(package) - level + 1]) if level else []
    return ".".join([*above, *(base.split(".") if base else [])])


class Import(NamedTuple):
    """One name that an import binds."""

    node: ast.Import | ast.ImportFrom
    alias: ast.alias  # the part of it that binds the name
    bound: str  # "*" for all names of a module
    full: str  # what is imported; the name begins with dots for a relative import


def imports(node: ast.AST) -> Iterator[Import]:
    """Yield each name that an import binds; nothing for other nodes."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            yield Import(node, alias, bound, alias.name)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            bound = alias.asname or alias.name
            yield Import(node, alias, bound, f"{module}.{alias.name}")


def all_imports(nodes: Iterable[ast.AST]) -> Iterator[Import]:
    """Yield each name that the imports among some nodes bind."""
    for node in nodes:
        if type(node) in STATEMENTS:  # most nodes are none
            yield from imports(node)


def loaded_module(node: ast.AST) -> str:
    """Return the module that `import_module("a.b")` loads; empty for other nodes.

    The name has to be in the text. `__import__("a.b")` gives `a`, as in Python.
    """
    if not isinstance(node, ast.Call):
        return ""
    function = last_name(node.func)
    if function not in _LOADERS:
        return ""
    named = keywords(node)
    name = text_of(node.args[0] if node.args else named.get("name"))
    if function == "__import__":
        has_list = "fromlist" in named or len(node.args) > 3
        return name if has_list else name.partition(".")[0]
    level = len(name) - len(name.lstrip("."))
    package = text_of(node.args[1] if len(node.args) > 1 else named.get("package"))
    if not level:
        return name
    return module_name(name[level:], level, package.split(".")) if package else ""
