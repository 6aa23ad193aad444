"""Where a module names TensorFlow or another library, and by which name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence

from hookbridge.old_programs.reading.bound_names import Names
from hookbridge.old_programs.reading.import_statements import (
    STATEMENTS,
    all_imports,
    canonical,
    imports,
    loaded,
)
from hookbridge.tf1_names.removed_in_libraries import (
    removed_methods,
    removed_names,
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
    """Yield the outermost dotted names in a module, and what it imports.

    So are methods that a library removed: if the module imports the library, an
    object with a method of such a name is taken for one of the library's, unless the
    module gives its own objects that name. A bare name counts if a starred import gives
    it.

    Args:
      nodes: all nodes of the module, each one before those below it.
      names: what the names of the module mean.

    Yields:
      A node, and the canonical name that it uses.
    """
    inner: set[int] = set()
    starred, around = names.given, _Surroundings(nodes)
    # First what a program has most of: a scan goes through all of its nodes.
    for node in nodes:
        if isinstance(node, ast.Attribute):
            inner.add(id(node.value))
            if id(node) not in inner and (name := names.canonical(node)) is not None:
                yield node, name
            else:
                yield from ((node, name) for name in around.removed_methods(node.attr))
        elif isinstance(node, ast.Call):
            if id(node) not in inner and (module := loaded(node)):
                yield node, canonical(module)
        elif type(node) in STATEMENTS:
            yield from _imported(node)
        elif starred and isinstance(node, ast.Name) and id(node) not in inner:
            yield from _given(node, names)


class _Surroundings:
    """What a module has beside a method; each part is found once, when it is asked."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._nodes = nodes

    def removed_methods(self, method: str) -> list[str]:
        """Return the removed methods of this name of which a library is used here."""
        removed = removed_methods(method)
        if not removed or method in self._own:
            return []
        candidates = (
            name for name in removed if name.partition(".")[0] in self._libraries
        )
        return [
            name
            for name in candidates
            if removed_names()[name].seen_with in self._names
        ]

    @functools.cached_property
    def _own(self) -> frozenset[str]:
        return own_members(self._nodes)

    @functools.cached_property
    def _libraries(self) -> set[str]:
        """The libraries that the module imports, or that one of those brings."""
        imported = {n.full.partition(".")[0] for n in all_imports(self._nodes)}
        return imported | {name for name, by in _BROUGHT_BY.items() if by & imported}

    @functools.cached_property
    def _names(self) -> set[str]:
        """The names that the module has in whatever place, and the empty one."""
        words = {"", *(getattr(node, "id", "") for node in self._nodes)}
        words |= {getattr(node, "attr", "") for node in self._nodes}
        return words | {n.name for n in self._nodes if isinstance(n, ast.alias)}


def own_members(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the methods of a module's classes, and what it assigns."""
    members: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            members |= {getattr(statement, "name", "") for statement in node.body}
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            members |= {getattr(node, "attr", ""), getattr(node, "id", "")}
    return frozenset(members)


def _imported(node: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Yield what an import statement names of other packages than the program's own."""
    for imported in imports(node):
        if not imported.full.startswith("."):
            yield imported.node, canonical(imported.full.removesuffix(".*"))


def _given(node: ast.Name, names: Names) -> Iterator[tuple[ast.Name, str]]:
    """Yield a bare name that a starred import gives."""
    name = names.canonical(node) if node.id in names.given else None
    if name:
        yield node, name
