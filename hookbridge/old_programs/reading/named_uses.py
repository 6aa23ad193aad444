"""Where a module names TensorFlow or another library, and by which name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from hookbridge.old_programs.names.lost_in_libraries import lost_methods, lost_names
from hookbridge.old_programs.reading.bound_names import Names
from hookbridge.old_programs.reading.import_statements import (
    STATEMENTS,
    all_imports,
    canonical,
    imports,
    loaded,
)

# Library -> packages whose objects are of it: a file need not import it itself.
_BROUGHT_BY = {
    "keras": {"tensorflow", "tf_keras"},
    "numpy": {"cv2", "tensorflow"},
    "unittest": {"absl", "tensorflow"},
}


def uses(
    nodes: Sequence[ast.AST], names: Names
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The outermost dotted names in a module, and what it imports.

    So are methods that a library has lost: if the module imports the library, an
    object with a method of such a name is taken for one of the library's, unless the
    module gives its own objects that name. A bare name counts if a starred import gives
    it.
    """
    inner: set[int] = set()
    given = names.given
    # First what a program has most of: a scan goes through all of its nodes.
    for node in nodes:
        if isinstance(node, ast.Attribute):
            inner.add(id(node.value))
            if id(node) not in inner and (name := names.canonical(node)) is not None:
                yield node, name
            elif (lost := lost_methods(node.attr)) and not is_own(node.attr, nodes):
                yield from ((node, name) for name in _of_imported(lost, nodes))
        elif isinstance(node, ast.Call):
            if id(node) not in inner and (module := loaded(node)):
                yield node, canonical(module)
        elif type(node) in STATEMENTS:
            yield from _imported(node)
        elif given and isinstance(node, ast.Name) and id(node) not in inner:
            yield from _given(node, names)


def _of_imported(names: Iterable[str], nodes: Sequence[ast.AST]) -> list[str]:
    """Those of the names that are of a library which the module imports."""
    imported = {one.full.partition(".")[0] for one in all_imports(nodes)}
    imported |= {name for name, by in _BROUGHT_BY.items() if by & imported}
    found = (name for name in names if name.partition(".")[0] in imported)
    return [name for name in found if _has(lost_names()[name].seen_with, nodes)]


def is_own(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a class of the module has a method, or an object a field, of a name."""
    return any(
        (
            isinstance(getattr(node, "ctx", None), ast.Store)
            and name in (getattr(node, "attr", ""), getattr(node, "id", ""))
        )
        or (
            isinstance(node, ast.ClassDef)
            and any(getattr(one, "name", "") == name for one in node.body)
        )
        for node in nodes
    )


def _has(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a module has a name, in whatever place; any has the empty one."""
    return not name or any(
        name in (getattr(node, "id", ""), getattr(node, "attr", ""))
        or (isinstance(node, ast.alias) and node.name == name)
        for node in nodes
    )


def _imported(node: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """What an import statement names of other packages than the program's own."""
    for one in imports(node):
        if not one.full.startswith("."):
            yield one.node, canonical(one.full.removesuffix(".*"))


def _given(node: ast.Name, names: Names) -> Iterator[tuple[ast.Name, str]]:
    """A bare name that a starred import gives."""
    name = names.canonical(node) if node.id in names.given else None
    if name:
        yield node, name
