"""Queue readers that a program puts on a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.old_programs.reading.modules import Module
from hookbridge.old_programs.scanning.findings import Finding, finding_at
from hookbridge.tf1_names.syntax import last_name, nodes_inside
from hookbridge.tf1_names.target import table

_READERS = frozenset(table("names")["queue readers"])


def readers_on_gpu(module: Module) -> Iterator[Finding]:
    """Yield the queue readers in blocks for a GPU, and in functions that these call.

    Functions of other files are not looked into.

    Args:
      module: the file.
    """
    functions = {n.name: n for n in module.nodes if isinstance(n, ast.FunctionDef)}
    blocks: dict[ast.AST, None] = {
        node: None for node in module.nodes if _device(node, module) == "gpu"
    }
    readers: dict[ast.Call, str] = {}
    waiting = list(blocks)
    while waiting:
        nodes = nodes_inside(waiting.pop(), lambda n: _device(n, module) == "cpu")
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            name = module.names.canonical(call.func) or ""
            if name in _READERS:
                readers[call] = name
            function = functions.get(last_name(call.func))
            if function is not None and function not in blocks:
                blocks[function] = None
                waiting.append(function)
    for call, name in readers.items():
        way = f"`hb.legacy.{last_name(call.func)}`"
        yield finding_at(module, call, "GPU_READER", name, way)


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
