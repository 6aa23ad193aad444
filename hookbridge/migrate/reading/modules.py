"""One file of a program: its source, its names, and what they say."""

from __future__ import annotations

import ast
import functools
import os
from pathlib import Path, PurePath
from typing import Any

from hookbridge.migrate.findings import CODES, Finding, Unread
from hookbridge.migrate.reading import guards
from hookbridge.migrate.reading.evidence import Evidence, examine
from hookbridge.migrate.reading.names import Names
from hookbridge.migrate.reading.sources import Source, parsed, read


class Module:
    """A source and the names that it binds."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names = Names(source.tree, source.nodes, self.package)

    @property
    def file(self) -> str:
        """The path, as it was given or found."""
        return self.source.file

    @functools.cached_property
    def path(self) -> str:
        """The real path."""
        return os.path.realpath(self.file)

    @functools.cached_property
    def dotted(self) -> str:
        """The path as a dotted name: `pkg/hooks.py` is `pkg.hooks`."""
        whole = PurePath(os.path.abspath(self.file) if self.file else "")
        parts = whole.with_suffix("").parts if whole.name else ()
        parts = parts[:-1] if parts[-1:] == ("__init__",) else parts
        return ".".join(p for p in parts if p != whole.anchor)

    @property
    def package(self) -> list[str]:
        """The parts of the package that the module is in, or is."""
        parts = self.dotted.split(".")
        return parts if PurePath(self.file).stem == "__init__" else parts[:-1]

    @functools.cached_property
    def guarded(self) -> frozenset[int]:
        """The ids of nodes for whose failure the program is prepared."""
        return guards.guarded(self.source.nodes)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the file says about the TensorFlow that it was written for."""
        return examine(self.source, self.names, self.guarded)

    def finding(
        self,
        node: ast.AST,
        code: str,
        name: str,
        way_out: str,
        details: dict[str, Any] | None = None,
    ) -> Finding:
        """A finding at a node."""
        cell, line = self.source.place(getattr(node, "lineno", 1))
        return Finding(
            file=self.file,
            line=line,
            column=getattr(node, "col_offset", 0) + 1,
            code=code,
            verdict=CODES[code].verdict,
            name=name,
            message=CODES[code].message,
            way_out=way_out,
            cell=cell,
            details=details or {},
        )


def read_module(file: str | os.PathLike[str]) -> Module | Unread:
    """Reads one file."""
    source = read(Path(file))
    if isinstance(source, Unread):
        return source
    try:
        return Module(source)
    except RecursionError:
        return Unread(source.file, "its code is nested too deeply")


def module_of_text(text: str, file: str = "") -> Module:
    """A module that is given as a text."""
    return Module(parsed(file, text))
