"""What callbacks read that Keras set on them until 2.3, and TensorFlow until 2.1."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hookbridge.tf1_names.syntax import last_name, text_of

DATA = "validation_data"
# Keys of `self.params`.
_KEYS = frozenset({"batch_size", "do_validation", "metrics", "samples"})
# Callbacks of Keras whose names do not say that they are.
_NAMES = frozenset({"BaseLogger", "History", "ModelCheckpoint", "ProgbarLogger"})


def reads(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    """Yield where classes of callbacks read these: `self.params["samples"]`."""
    for node in nodes:
        if isinstance(node, ast.ClassDef) and any(map(_is_callback, node.bases)):
            inside = list(ast.walk(node))
            is_own = any(_is_of_self(n, DATA, ast.Store) for n in inside)
            for part in inside:
                if _is_of_self(part, DATA, ast.Load) and not is_own:
                    assert isinstance(part, ast.Attribute)
                    yield part, f"self.{DATA}"
                elif isinstance(part, ast.Subscript | ast.Call) and (key := _key(part)):
                    yield part, f'self.params["{key}"]'


def _is_callback(base: ast.expr) -> bool:
    name = last_name(base)
    return name.endswith("Callback") or name in _NAMES


def _is_of_self(node: ast.AST, name: str, context: type[ast.expr_context]) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, context)
        and getattr(node.value, "id", "") == "self"
    )


def _key(node: ast.Subscript | ast.Call) -> str:
    """Return the old key of `self.params[key]` or its `get`; it may be empty."""
    if isinstance(node, ast.Subscript):
        owner, key = node.value, node.slice
    elif getattr(node.func, "attr", "") == "get" and node.args:
        owner, key = getattr(node.func, "value", node), node.args[0]
    else:
        return ""
    is_of_params = _is_of_self(owner, "params", ast.Load)
    return text_of(key) if is_of_params and text_of(key) in _KEYS else ""
