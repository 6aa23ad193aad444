"""What a program does in blocks for a GPU, and in functions that these call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.tf1_names.syntax import last_name, nodes_inside

# The modules that a module imports, by the names under which it imports them.
_Imports = Mapping[Module, Mapping[str, Module]]


def blocks(module: Module) -> Iterator[ast.With]:
    """Yield the blocks of a module that are for a GPU."""
    for node in module.nodes:
        if isinstance(node, ast.With) and _device(node, module) == "gpu":
            yield node


def calls_in(node: ast.AST, module: Module) -> Iterator[ast.Call]:
    """Yield the calls in a node of a module, but for those in blocks for the CPU."""
    for part in nodes_inside(node, lambda n: _device(n, module) == "cpu"):
        if isinstance(part, ast.Call):
            yield part


def functions(module: Module, name: str) -> Iterator[ast.FunctionDef]:
    """Yield what a call of a name may run: functions, methods and `__init__`."""
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node
        elif isinstance(node, ast.ClassDef) and node.name == name:
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    yield part


def called_on_gpu(imports: _Imports) -> dict[Module, frozenset[str]]:
    """Return the names in each module that code in a block for a GPU calls.

    Args:
      imports: the modules of some programs, and what each of them imports.
    """
    names: dict[Module, set[str]] = {}
    waiting: list[tuple[Module, ast.AST]] = [(m, b) for m in imports for b in blocks(m)]
    while waiting:
        for owner, name in _called_functions(*waiting.pop(), imports):
            if name not in names.setdefault(owner, set()):
                names[owner].add(name)
                waiting += [(owner, f) for f in functions(owner, name)]
    return {module: frozenset(called) for module, called in names.items()}


def _called_functions(
    module: Module, node: ast.AST, imports: _Imports
) -> Iterator[tuple[Module, str]]:
    """Yield the modules that may have what a node of a module calls, and its name."""
    everywhere = {
        name: m for imported in imports.values() for name, m in imported.items()
    }
    known = {**everywhere, **imports[module]}
    handed_on = [_owner(dotted, known) for dotted in module.names.bound.values()]
    candidates = dict.fromkeys([*imports[module].values(), *filter(None, handed_on)])
    for call in calls_in(node, module):
        dotted = module.names.by_imports(call.func) or ""
        name = dotted.rpartition(".")[2] or last_name(call.func)
        if owner := _owner(dotted, known):
            yield owner, name
        elif any(functions(module, name)) and not dotted:
            yield module, name
        elif not dotted:  # of a method nobody knows whose it is
            yield from ((candidate, name) for candidate in candidates)


def _owner(dotted: str, known: Mapping[str, Module]) -> Module | None:
    """Return the innermost module above a dotted name; None for other libraries."""
    while dotted := dotted.rpartition(".")[0]:
        if dotted in known:
            return known[dotted]
    return None


def _device(node: ast.AST, module: Module) -> str:
    """Return the kind of device that a block is for; empty where it names none."""
    for item in node.items[::-1] if isinstance(node, ast.With) else ():
        call = item.context_expr
        if not isinstance(call, ast.Call) or not call.args:
            continue
        if (module.names.canonical(call.func) or "").endswith(".device"):
            text = ast.unparse(call.args[0]).lower()
            return next((kind for kind in ("gpu", "cpu") if f"{kind}:" in text), "")
    return ""
