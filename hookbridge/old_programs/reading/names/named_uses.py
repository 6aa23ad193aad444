"""Where a module names TensorFlow or another library, and by which name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from hookbridge.old_programs.reading.names.bound_names import Names
from hookbridge.old_programs.reading.names.import_statements import (
    STATEMENTS,
    all_imports,
    canonical,
    imports,
    loaded_module,
)
from hookbridge.tf1_names.removed_in_libraries import (
    removed_methods,
    removed_names,
)
from hookbridge.tf1_names.syntax import last_name

# Library -> packages whose objects are of it: a file need not import it itself.
_BROUGHT_BY = {
    "keras": {"tensorflow", "tf_keras"},
    "numpy": {"cv2", "tensorflow"},
    "unittest": {"absl", "tensorflow"},
}


def uses(
    nodes: Sequence[ast.AST],
    names: Names,
    libraries: Container[str] = (),
    members: Iterable[Mapping[str, set[str]]] = (),
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield the outermost dotted names in a module, and what it imports.

    So are methods that a library removed: if the module imports the library, an
    object with a method of such a name is taken for one of the library's, unless
    `is_of_own_class` says otherwise. A bare name counts if a starred import gives it.

    Args:
      nodes: all nodes of the module, each one before those below it.
      names: what the names of the module mean.
      libraries: those of the other files of its programs, whose objects it may get.
      members: the `own_members` of the files of its programs that it imports.

    Yields:
      A node, and the canonical name that it uses.
    """
    inner: set[int] = set()
    starred, around = names.given, _Surroundings(nodes, libraries, members)
    # First what a program has most of: a scan goes through all of its nodes.
    for node in nodes:
        if isinstance(node, ast.Attribute):
            inner.add(id(node.value))
            if id(node) not in inner and (name := names.canonical(node)) is not None:
                yield node, name
            else:
                yield from ((node, name) for name in around.removed_methods(node))
        elif isinstance(node, ast.Call):
            if id(node) not in inner and (module := loaded_module(node)):
                yield node, canonical(module)
        elif type(node) in STATEMENTS:
            yield from _imported_libraries(node)
        elif starred and isinstance(node, ast.Name) and id(node) not in inner:
            name = names.canonical(node) if node.id in starred else None
            if name is not None:
                yield node, name


class _Surroundings:
    """What a module has beside a method; each part is found once, when it is needed."""

    def __init__(
        self,
        nodes: Sequence[ast.AST],
        of_others: Container[str],
        members: Iterable[Mapping[str, set[str]]],
    ) -> None:
        self._nodes = nodes
        self._of_others = of_others
        self._members = members

    def removed_methods(self, method: ast.Attribute) -> list[str]:
        """Return the removed methods of this name of which a library is used here."""
        removed = removed_methods(method.attr)
        if not removed or is_of_own_class(method, self._nodes, self._own):
            return []
        candidates = (name for name in removed if self._may_have(name))
        return [
            name
            for name in candidates
            if removed_names()[name].seen_with in self._names
        ]

    def _may_have(self, method: str) -> bool:
        """Return whether the module may have an object with a removed method.

        An object from another file counts if `hb.legacy.attribute` tries it first.
        """
        root, row = method.partition(".")[0], removed_names()[method]
        is_ours = row.is_restored and not row.replacement
        return root in self._libraries or (is_ours and root in self._of_others)

    @functools.cached_property
    def _own(self) -> list[Mapping[str, set[str]]]:
        return [own_members(self._nodes), *self._members]

    @functools.cached_property
    def _libraries(self) -> set[str]:
        return libraries_of(self._nodes)

    @functools.cached_property
    def _names(self) -> set[str]:
        """The names that the module has in whatever place, and the empty one."""
        words = {"", *(getattr(node, "id", "") for node in self._nodes)}
        words |= {getattr(node, "attr", "") for node in self._nodes}
        return words | {n.name for n in self._nodes if isinstance(n, ast.alias)}


def libraries_of(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the libraries that a module imports, or that one of those brings."""
    imported = {n.full.partition(".")[0] for n in all_imports(nodes)}
    return imported | {name for name, by in _BROUGHT_BY.items() if by & imported}


def is_of_own_class(
    method: ast.Attribute,
    nodes: Sequence[ast.AST],
    class_members: Iterable[Mapping[str, set[str]]],
) -> bool:
    """Return whether a method with the name of a removed one is the program's own.

    A class of the program may have such a method, and another object of the program
    the removed one. `hb.legacy.attribute` tries the object itself first, so the method
    is only left alone where the object is seen to be of that class.

    Args:
      method: the method, or the attribute.
      nodes: the nodes of its file.
      class_members: `own_members` of each file of the program whose classes may
        define it.
    """
    defining = [
        members[method.attr] for members in class_members if method.attr in members
    ]
    if not defining or not isinstance(method.ctx, ast.Load):
        return bool(defining)
    rows = [removed_names()[name] for name in removed_methods(method.attr)]
    if not all(row.replacement or row.is_restored for row in rows):
        return True  # `hb.legacy.attribute` does not know it
    classes = set().union(*defining)
    owner = method.value
    if isinstance(owner, ast.Call):
        return last_name(owner.func) in {"super", *classes}
    return ast.unparse(owner) in {"self", "cls", *_objects(nodes, classes)}


def _objects(nodes: Iterable[ast.AST], classes: Container[str]) -> set[str]:
    """Return the names that are only ever given objects of some classes."""
    of_classes: set[str] = set()
    of_others: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign):
            made = node.value.func if isinstance(node.value, ast.Call) else node.value
            is_made = isinstance(node.value, ast.Call) and last_name(made) in classes
            names = {ast.unparse(target) for target in node.targets}
            (of_classes if is_made else of_others).update(names)
    return of_classes - of_others


def own_members(nodes: Iterable[ast.AST]) -> Mapping[str, set[str]]:
    """Return what the classes of a module define, with the classes that do.

    So it returns the attributes that the module assigns, of classes that it may not
    show.
    """
    members: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            names = {getattr(statement, "name", "") for statement in node.body}
            for name in names | {name.id for name in _assigned_members(node.body)}:
                members.setdefault(name, set()).add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            members.setdefault(node.attr, set())
    return members


def _assigned_members(body: Sequence[ast.stmt]) -> Iterator[ast.Name]:
    """Yield the names that statements of a class assign; functions are left out."""
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            stored = ast.walk(statement)
            yield from (
                n
                for n in stored
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            )


def _imported_libraries(node: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Yield what an import statement names of other packages than the program's own."""
    for imported in imports(node):
        if not imported.full.startswith("."):
            yield imported.node, canonical(imported.full.removesuffix(".*"))
