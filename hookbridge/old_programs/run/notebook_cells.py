"""Runs a notebook: its cells in order, as Jupyter does, in the program's world.

IPython runs the cells where it is installed, with its magics. Without it, a notebook
that has none of them runs all the same.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import types
from collections.abc import Collection
from typing import Protocol

from hookbridge import errors
from hookbridge.ground.imports import extras
from hookbridge.old_programs.reading.one_file.modules import why
from hookbridge.old_programs.reading.one_file.notebooks import Cell, Notebook
from hookbridge.old_programs.run import statements, tracebacks
from hookbridge.old_programs.run.located import Located
from hookbridge.old_programs.run.own_program import Program
from hookbridge.tf1_names.parsing import parse_source

# Jupyter shows figures inside of the notebook; here a figure is a line of text.
_BACKEND = "module://matplotlib_inline.backend_inline"


class Shell(Protocol):
    """What runs cells."""

    def run(self, cell: Cell) -> BaseException | None:
        """Run a cell; return the error that ended it."""


def check(notebook: Notebook, path: str) -> None:
    """Make sure that all cells can run, before the first one does."""
    has_ipython = extras.is_installed("IPython")
    for number, error in notebook.broken.items():
        source = next(cell.source for cell in notebook.code if cell.number == number)
        if not (has_ipython and _is_ipython(source)):
            raise errors.InvalidArgumentError(
                f"Received the notebook {path!r}; expected cells of Python 3: its cell "
                f"{number} has a {why(error)}."
            )
    cell = notebook.uses_ipython
    if cell is not None and not has_ipython:
        way_out = "Notebooks without magics (`%...`, `!...`) run without it."
        user = f"Cell {cell.number} of {path}, which has magics of IPython,"
        extras.check("IPython", user=user, way_out=way_out)


def _is_ipython(source: str) -> bool:
    """Return whether IPython understands a cell."""
    from hookbridge.old_programs.run import ipython

    try:
        parse_source(ipython.as_python(source))
    except (SyntaxError, ValueError):  # `ValueError` for text that UTF-8 cannot hold
        return False
    return True


def run(
    notebook: Notebook, located: Located, program: Program, main: types.ModuleType
) -> int:
    """Run the cells in the main module; say which one failed."""
    targets_tf1 = program.enter_for(located.file)
    shell: Shell
    folders: tuple[str, ...] = ()
    if extras.is_installed("IPython"):
        from hookbridge.old_programs.run import ipython

        os.environ.setdefault("MPLBACKEND", _BACKEND)
        shell = ipython.IPythonShell(main, located.file, program, targets_tf1)
        folders = (ipython.FOLDER,)
    else:
        left_out = program.left_out(located.file)
        shell = PlainShell(main, located.file, targets_tf1, left_out)
    name, left = os.path.basename(located.file), list(notebook.code)
    while left:
        cell = left.pop(0)
        error = shell.run(cell)
        if error is None:
            continue
        if cell.may_fail and isinstance(error, Exception):
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            continue
        after = f"; the {len(left)} after it did not run" if left else ""
        is_end = isinstance(error, SystemExit)
        did = "ended the program" if is_end else "failed"
        try:
            with tracebacks.of_program_only(folders):
                raise error
        finally:
            if left or not is_end:
                line = f"hookbridge run: {name}: cell {cell.number} {did}{after}"
                print(line, file=sys.stderr)
    return 0


class PlainShell:
    """Runs cells without IPython."""

    def __init__(
        self,
        main: types.ModuleType,
        file: str,
        targets_tf1: bool | None,
        left_out: Collection[str] = (),
    ) -> None:
        self._space = main.__dict__
        self._file = file
        self._targets_tf1 = targets_tf1
        self._left_out = left_out

    def run(self, cell: Cell) -> BaseException | None:
        """See `Shell`; shows the value of an expression at the end of the cell."""
        name, source = cell.label(self._file), cell.source
        lines = source.splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)
        tree = ast.parse(source, name)
        tree = statements.as_run(tree, self._targets_tf1, self._left_out)
        is_shown = bool(tree.body) and isinstance(tree.body[-1], ast.Expr)
        shown = tree.body.pop() if is_shown else None
        try:
            exec(compile(tree, name, "exec"), self._space)
            if isinstance(shown, ast.Expr):
                value = compile(ast.Expression(shown.value), name, "eval")
                sys.displayhook(eval(value, self._space))
        except BaseException as e:
            return e
        return None
