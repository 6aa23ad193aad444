"""Which names a module has, by its syntax tree; nothing is imported.

A name is *certain* if every way through the module binds it, and *possible* if some
way does. Functions may bind names too, in the text (`global`) or without it (`exec`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from hookbridge.ground.imports.sys_modules import is_of_sys, only_read

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)
# Calls by which a module may get names that its text does not show: functions of
# Python, and `attach` of the package lazy_loader.
_DYNAMIC = frozenset({"attach", "attach_stub", "exec", "globals"})
# These give the names of the module only where it calls them itself.
_OF_SCOPE = frozenset({"locals", "vars"})
# They give the members of an enumeration to its module.
_ENUMS = frozenset({"_convert", "_convert_", "global_enum"})
# A function of TensorFlow that takes names away from the module that calls it.
_REMOVING = "remove_undocumented"
# A module with one of these names answers for others.
_ANSWERING = frozenset({"__getattr__", "_module_wrapper", "module_wrapper"})
_ALL = "__all__"


@dataclass
class ModuleNames:
    """What the text of a module says of its names.

    Attributes:
      certain: names that it has for sure.
      possible: all names that its text may bind, the certain ones among them.
      starred: the modules all of whose names it imports; a relative one has its dots.
      listed: the names in its `__all__`; None if it has none, or one that is computed.
      is_opaque: whether it may have names that its text does not show.
      adds_modules: whether it may add modules that have no files.
      removes_names: whether it takes names away by a call: none is certain then.
    """

    certain: set[str] = field(default_factory=set)
    possible: set[str] = field(default_factory=set)
    starred: list[str] = field(default_factory=list)
    listed: frozenset[str] | None = None
    is_opaque: bool = False
    adds_modules: bool = False
    removes_names: bool = False


def names_of_module(tree: ast.Module) -> ModuleNames:
    """Read the names of a module.

    Args:
      tree: its syntax tree.
    """
    names = ModuleNames()
    names.certain = _certain(tree.body)
    names.possible = set(names.certain)
    for statement in _statements(tree.body):
        names.possible.update(bound_by_statement(statement))
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            names.starred.append("." * statement.level + (statement.module or ""))
    nodes = list(ast.walk(tree))
    imported = {n for i in nodes if isinstance(i, _IMPORTS) for n in bound_by(i)}
    # Such a loader sets the name that the module gives to it anyway.
    loaded = {id(a) for n in nodes if _is_lazy_loader(n) for a in n.args}
    harmless = loaded | only_read(nodes)
    for node in nodes:
        if id(node) not in harmless:
            _note_hidden(node, names, imported)
    for statement in _statements(tree.body):
        names.is_opaque |= any(map(_gives_scope, _run_at_once(statement)))
    names.is_opaque |= bool(names.possible & _ANSWERING)
    # A function may add names to `__all__`, too.
    is_computed = any(map(_asks_listed, nodes))
    names.listed = None if is_computed else _listed(tree.body)
    return names


def _note_hidden(node: ast.AST, names: ModuleNames, imported: Collection[str]) -> None:
    """Note what one node does to the names of the module beside binding some.

    `imported` names may be modules, this one among them.
    """
    if isinstance(node, ast.Global):
        names.possible.update(node.names)
    elif isinstance(node, ast.Call):
        names.is_opaque |= _is_dynamic(node, imported)
        names.removes_names |= called_name(node) == _REMOVING
    elif isinstance(node, ast.Attribute):
        names.adds_modules |= is_of_sys(node)
        names.is_opaque |= is_of_sys(node) or node.attr in _ENUMS
        if isinstance(node.value, ast.Call) and called_name(node.value) == "globals":
            names.removes_names |= node.attr in ("clear", "pop")


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that one node binds, without the nodes below it.

    Args:
      node: any node; a star binds no name that is known here.
    """
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    elif isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            if alias.name != "*":
                yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        yield from filter(None, [node.name])
    elif isinstance(node, ast.MatchMapping):
        yield from filter(None, [node.rest])
    elif isinstance(node, ast.arg):
        yield node.arg


def bound_by_statement(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that one statement binds, without those of its blocks."""
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return  # an annotation alone
    for node in _run_at_once(statement):
        yield from bound_by(node)


def _run_at_once(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of one statement that run with it, in the scope around it."""
    waiting: list[tuple[ast.AST, bool]] = [(statement, False)]
    while waiting:
        node, is_inner = waiting.pop()
        # A comprehension has its own variables, but not the walruses in it.
        if not is_inner or isinstance(node, ast.NamedExpr):
            yield node
        if isinstance(node, ast.NamedExpr):
            yield node.target
        if isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            continue
        is_inner = is_inner or isinstance(node, _COMPREHENSIONS)
        below = ast.iter_child_nodes(node)
        # The name of an error is lost at the end of its handler.
        bodies = (ast.stmt, ast.ExceptHandler)
        waiting += [(n, is_inner) for n in below if not isinstance(n, bodies)]


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements that a module may run while it is imported."""
    for statement in body:
        yield statement
        if not isinstance(statement, _DEFINITIONS):
            for block in blocks(statement):
                yield from _statements(block)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement, empty ones too.

    Args:
      statement: any statement; a simple one has no blocks.
    """
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _certain(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that a block binds, whichever way it takes."""
    bound: set[str] = set()
    for statement in body:
        bound |= _always_bound(statement)
        bound -= {n for inner in _statements([statement]) for n in _deleted(inner)}
    return bound


def _deleted(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement deletes."""
    if isinstance(statement, ast.Delete):
        for target in statement.targets:  # `del a, b` or `del (a, b)`
            yield from (t.id for t in ast.walk(target) if _is_deleted(t))


def _is_deleted(node: ast.AST) -> TypeGuard[ast.Name]:
    """Return whether a part of `del` is a name that it deletes."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)


def _always_bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds for certain, with its blocks."""
    if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
        return set()  # it may have no round
    bound = set(bound_by_statement(statement))
    if isinstance(statement, ast.If):
        return bound | _of_every_way(statement.body, statement.orelse)
    if isinstance(statement, ast.With | ast.AsyncWith):
        return bound | _certain(statement.body)
    if isinstance(statement, ast.Try):
        handlers = [handler.body for handler in statement.handlers]
        tried = [*statement.body, *statement.orelse]
        return _of_every_way(tried, *handlers) | _certain(statement.finalbody)
    return set() if isinstance(statement, ast.Match) else bound


def _of_every_way(*ways: Sequence[ast.stmt]) -> set[str]:
    """Return the names that each of some blocks binds, but for those that leave."""
    bound = [_certain(way) for way in ways if not _leaves(way)]
    return set.intersection(*bound) if bound else set()


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], _LEAVING)


def _is_dynamic(call: ast.Call, imported: Collection[str]) -> bool:
    """Return whether a call may set names of the module."""
    name = called_name(call)
    if name == "setattr":
        # Of what has other names, `sys.modules` is noted where it is read.
        root = call.args[0] if call.args else call
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if isinstance(root, ast.Call):
            return called_name(root) in ("import_module", "setattr")
        return not isinstance(root, ast.Name) or root.id in imported
    return name in _DYNAMIC


def _is_lazy_loader(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a node is `LazyLoader("name", globals(), "module")`."""
    return isinstance(node, ast.Call) and called_name(node) == "LazyLoader"


def _gives_scope(node: ast.AST) -> bool:
    """Return whether a node is `locals()` or `vars()`."""
    return (
        isinstance(node, ast.Call) and called_name(node) in _OF_SCOPE and not node.args
    )


def called_name(call: ast.Call) -> str:
    """Return the last part of the name that is called: `fit` of `model.fit(...)`."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _listed(body: Sequence[ast.stmt]) -> frozenset[str] | None:
    """Return the names in `__all__`, if it is one list of strings in the module."""
    stores = [s for s in _statements(body) if _ALL in _targets(s)]
    if len(stores) != 1 or not isinstance(stores[0], ast.Assign):
        return None
    value = stores[0].value
    items = value.elts if isinstance(value, ast.List | ast.Tuple) else None
    texts = [item.value for item in items or () if isinstance(item, ast.Constant)]
    if items is None or len(texts) != len(items):
        return None
    return frozenset(text for text in texts if isinstance(text, str))


def _asks_listed(node: ast.AST) -> bool:
    """Return whether a node is a method of `__all__`."""
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == _ALL


def _targets(statement: ast.stmt) -> set[str]:
    """Return the names that a statement assigns, or changes by a method."""
    names = set(bound_by_statement(statement))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            names.add(function.value.id)
    return names
