"""Which TensorFlow name an expression means, by the imports of its file."""

from __future__ import annotations

import ast

from hookbridge.migrate.sources import Source

# Nested copies of the same module, as `tf.compat.v1.compat.v1`.
_COPIES = (
    ("compat.v1.compat.v1", "compat.v1"),
    ("compat.v2.compat.v1", "compat.v1"),
    ("compat.v1.compat.v2", "compat.v2"),
    ("compat.v2.compat.v2", "compat.v2"),
)


def canonical(dotted: str) -> str:
    """One spelling for a dotted name: `tf.X`, `tf.compat.v1.X`, or unchanged.

    `tensorflow` and `tensorflow.compat.v2` become `tf`, `tensorflow.contrib` becomes
    `tf.contrib`; `tensorflow.python`, `tensorflow.core` and other packages stay.
    """
    root, _, rest = dotted.partition(".")
    if root != "tensorflow" or rest.startswith(("python.", "core.")):
        return dotted
    for copy, plain in _COPIES:
        while rest == copy or rest.startswith(f"{copy}."):
            rest = plain + rest[len(copy) :]
    if rest.startswith("compat.v1.contrib"):
        rest = rest[len("compat.v1.") :]  # `tf.contrib`, where `tf` is now v1
    if rest == "compat.v2" or rest.startswith("compat.v2."):
        rest = rest[len("compat.v2.") :]
    if rest.startswith("contrib.") and ".python." in rest:
        rest = _public_contrib(rest)
    return f"tf.{rest}" if rest else "tf"


def _public_contrib(rest: str) -> str:
    """`contrib.learn.RunConfig` for `contrib.learn.python.learn...RunConfig`."""
    package, _, inside = rest.partition(".python.")
    parts = inside.split(".")
    classes = [number for number, part in enumerate(parts) if part[:1].isupper()]
    return f"{package}.{'.'.join(parts[classes[0] :])}" if classes else rest


class Names:
    """The names that a module binds by imports and plain assignments.

    Args:
      source: the module; imports inside functions count as well.
    """

    def __init__(self, source: Source) -> None:
        self._bound: dict[str, str] = {}
        self.starred: list[str] = []
        for node in source.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname:
                        self._bound[alias.asname] = alias.name
                    else:
                        root = alias.name.partition(".")[0]
                        self._bound[root] = root
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if alias.name == "*":
                        self.starred.append(node.module)
                    else:
                        bound = alias.asname or alias.name
                        self._bound[bound] = f"{node.module}.{alias.name}"
        # `estimator = tf.estimator` and `v1 = tf.compat.v1`, at module level.
        for statement in source.tree.body:
            if (
                isinstance(statement, ast.Assign)
                and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)
                and isinstance(statement.value, ast.Attribute | ast.Name)
                and (found := self.raw(statement.value)) is not None
                and found.partition(".")[0].startswith(("tensorflow", "tf_slim"))
            ):
                self._bound[statement.targets[0].id] = found

    def raw(self, node: ast.AST) -> str | None:
        """The dotted name of an expression as imported, or None."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        root = self._bound.get(node.id)
        return None if root is None else ".".join([root, *reversed(parts)])

    def of(self, node: ast.AST) -> str | None:
        """The canonical dotted name of an expression, or None."""
        raw = self.raw(node)
        return None if raw is None else canonical(raw)
