"""Imports that rewritten code needs."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterator

from hookbridge.old_programs.reading.names.import_statements import canonical, imports
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.rewriting.engine.inserted_lines import InsertedLines
from hookbridge.tf1_names import installed_names
from hookbridge.tf1_names.private_names import HIDDEN_PACKAGES
from hookbridge.tf1_names.syntax import is_below
from hookbridge.tf1_names.target import Target

# Root of a dotted name -> module, and the name it is usually imported as.
_USUAL = {"tf": ("tensorflow", "tf"), "hookbridge": ("hookbridge", "hb")}

# The beginnings of names in the packages that `tensorflow` hides.
PRIVATE = tuple(f"{package}." for package in HIDDEN_PACKAGES)

_LAST = sys.maxsize


def module_of(root: str) -> str:
    """Return the module that the root of a replacement means."""
    return _USUAL.get(root, (root, root))[0]


class NeededImports:
    """What one module imports at its top level, and what it has to import.

    `own_modules` are the modules of its program that it imports.
    """

    def __init__(
        self, module: Module, own_modules: Collection[str], target: Target
    ) -> None:
        names = module.names
        self.bound: dict[str, str] = {
            name: value
            for name, value in names.bound.items()
            if name in names.bound_here and name not in names.aliases
        }
        self._nodes = module.nodes
        # The line after which a bound name can be used.
        self._lines: dict[str, int] = {}
        for statement in module.tree.body:
            for import_ in (o for node in ast.walk(statement) for o in imports(node)):
                self._lines.setdefault(import_.bound, statement.lineno)
        self._wanted: dict[str, str] = {}  # name -> module
        self.first: list[str] = []  # lines that stand before every other import
        # Calls that stand after the import of TensorFlow, and before own modules.
        self.switches: list[str] = []
        # Whether `tensorflow` will be that of v1 in this module.
        self.is_v1 = False
        self._own_modules = own_modules
        self._target = target

    def _usable(self, line: int) -> Iterator[tuple[str, str]]:
        """Yield the bound names that are imported before a line of the module."""
        for name, value in self.bound.items():
            if self._lines.get(name, 0) <= line:
                yield name, value

    def expression(self, replacement: str, line: int = _LAST) -> str:
        """Return how to write a replacement (`tf.X`, `hookbridge.X`, ...) in a line."""
        if replacement.startswith(PRIVATE):  # TensorFlow hides `python` and `core`
            module = installed_names.module_of(replacement)
            name = self._bound(module, module.rpartition(".")[2], line)
            return name + replacement[len(module) :]
        text = self._by_import(replacement, line) or self._by_v1(replacement, line)
        if text:
            return text
        root, dot, inside = replacement.partition(".")
        if hasattr(builtins, root):
            return replacement
        if root == "tf" and self.is_v1:
            return self._of_v1(self.here(root, line), replacement)
        return f"{self.here(root, line)}{dot}{inside}"

    def _by_import(self, replacement: str, line: int) -> str:
        """Return a name by the import of its nearest module; empty without one."""
        best, prefix = "", ""
        for name, value in self._usable(line):
            value = canonical(value)
            is_root = value in ("tf", "tf.compat.v1") or value.endswith(".keras")
            if is_root or value.startswith(("hookbridge", "tf_slim")):
                is_inside = is_below(replacement, value)
                is_module = value.rpartition(".")[2].islower()
                if is_inside and is_module and len(value) > len(best):
                    best, prefix = value, name
        return f"{prefix}{replacement[len(best) :]}" if best else ""

    def _by_v1(self, replacement: str, line: int) -> str:
        """Return a name outside of v1 by an import of v1; empty without one."""
        root = replacement.partition(".")[0]
        for name, value in self._usable(line):
            if root == "tf" and canonical(value) == "tf.compat.v1":
                return self._of_v1(name, replacement)
        return ""

    def _of_v1(self, v1: str, replacement: str) -> str:
        """Return a name of TensorFlow below what `tensorflow.compat.v1` is here."""
        inside = replacement.partition(".")[2].removeprefix("compat.v1.")
        is_there = inside.startswith("compat.") or self._target.has_v1(replacement)
        is_there |= replacement.startswith("tf.compat.v1.")
        return f"{v1}.{'' if is_there else 'compat.v2.'}{inside}"

    def here(self, root: str, line: int = _LAST) -> str:
        """Return the name of a top-level module in the file; import it if it has none.

        Args:
          root: the module, `tf` for TensorFlow.
          line: the line that uses the name, which imports below it do not bind.
        """
        module, name = _USUAL.get(root, (root, root))
        if root == "tf" and self.is_v1:
            module = "tensorflow.compat.v1"
        return self._bound(module, name, line)

    def call_first(self, root: str, function: str) -> str:
        """Call a function of a top-level module before every other import.

        Args:
          root: the module.
          function: the name in it.

        Returns:
          The call.
        """
        module, name = _USUAL.get(root, (root, root))
        bound = {**self.bound, **self._wanted}
        name = next((name for name, value in bound.items() if value == module), name)
        self._wanted.pop(name, None)
        self.bound[name], self._lines[name] = module, 0
        call = f"{name}.{function}()"
        self.first += [f"import {module} as {name}", call]
        return call

    def _bound(self, module: str, name: str, line: int) -> str:
        """Return the name of a module in a line; import it as `name` without one."""
        for bound, value in (*self._wanted.items(), *self._usable(line)):
            if value == module:
                return bound
        fields = ("id", "arg", "name", "asname")
        taken = {getattr(node, field, "") for node in self._nodes for field in fields}
        while name in taken or name in self._wanted:
            name = f"{name}_"
        self._wanted[name] = module
        return name

    def add(self, text: str) -> str:
        """Return the text with the wanted lines added."""
        if not (self._wanted or self.first or self.switches):
            return text
        lines = InsertedLines(text, self._own_modules)
        lines.put_first(self.first)
        # These come before the wanted imports: they may take one of them.
        switches = [
            line
            for switch in self.switches
            for line in lines.switch_lines(switch, self.bound, self._wanted)
        ]
        lines.put_imports(self._wanted)
        lines.put(switches)
        return lines.text()
