"""IPython's shell, whose cells find the TensorFlow of the program's world.

Only this module imports IPython; it is there where IPython is installed.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Collection
from typing import Any

import IPython
from IPython.core.compilerop import CachingCompiler
from IPython.core.history import HistoryManager
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell

from hookbridge.ground import patching
from hookbridge.old_programs.reading.one_file.notebooks import Cell
from hookbridge.old_programs.run.own_modules import OwnLoader
from hookbridge.old_programs.run.own_program import Program
from hookbridge.old_programs.run.statements import as_run

FOLDER = os.path.join(os.path.dirname(IPython.__file__), "")
# `pip install tensorflow==1.15` would replace the TensorFlow that runs the notebook.
_REPLACES = re.compile(
    r"(?:pip3?|conda)\s+(?:.*\s)?install\s.*\btensorflow(?:[-_][cg]pu)?\s*[=<>~!]"
)
# Colab's magic.
_VERSION_MAGIC = "tensorflow_version"


class Cells(ast.NodeTransformer):
    """Gives cells the program's TensorFlow, and keeps the one that is installed."""

    def __init__(
        self, targets_tf1: bool | None, left_out: Collection[str] = ()
    ) -> None:
        self._targets_tf1 = targets_tf1  # see `statements.as_run`
        self._left_out = left_out

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """Run the whole cell."""
        self.generic_visit(node)
        return as_run(node, self._targets_tf1, self._left_out)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave out an installation, and say so."""
        self.generic_visit(node)
        command = _command(node)
        if not _REPLACES.match(command):
            return node
        print(
            f"hookbridge: `{command}` is skipped: it would replace the TensorFlow "
            "that runs this notebook",
            file=sys.stderr,
        )
        return ast.Constant(None)


def _command(call: ast.Call) -> str:
    """Return the command behind `!pip install x` and `%pip install x`."""
    words = [a.value for a in call.args if isinstance(a, ast.Constant)]
    function = call.func if isinstance(call.func, ast.Attribute) else None
    if function is None or ast.unparse(function.value) != "get_ipython()":
        return ""
    if function.attr in ("system", "getoutput", "run_line_magic"):
        return " ".join(map(str, words))
    return ""


class _Compiler(CachingCompiler):
    """Names the code of cells."""

    cell = ""  # what a traceback names as the file of the code that runs

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """See `cell`."""
        return self.cell


class _Shell(InteractiveShell):
    """A shell whose errors are shown by who runs the cells."""

    # The error that IPython would have shown last. Magics (`%%time`, `%run`) show an
    # error, and go on.
    error: BaseException | None = None

    def init_history(self) -> None:
        """Keep no history."""
        self.history_manager = HistoryManager(shell=self, parent=self, enabled=False)

    def enable_gui(self, gui: object = None) -> None:
        """Do nothing: figures need no window."""

    def showtraceback(self, *values: Any, **more: Any) -> None:
        """Keep the error."""
        self.error = sys.exc_info()[1]

    showsyntaxerror = showtraceback


class IPythonShell:
    """Runs cells as Jupyter does."""

    def __init__(
        self,
        main: types.ModuleType,
        file: str,
        program: Program,
        targets_tf1: bool | None,
    ) -> None:
        # It would be written into the user's home.
        self._folder = tempfile.TemporaryDirectory(prefix="hookbridge-ipython-")
        self._file = file
        shell: Any = _Shell.instance(
            colors="NoColor",
            ipython_dir=self._folder.name,
            user_module=main,
            compiler_class=_Compiler,
        )
        prepare(shell, program, targets_tf1, program.left_out(file))
        # It says so where a cell ends the program.
        warnings.filterwarnings("ignore", "To exit: use 'exit'", UserWarning)
        self._shell = shell

    def run(self, cell: Cell) -> BaseException | None:
        """See `notebook_cells.Shell`."""
        self._shell.compile.cell = cell.label(self._file)
        self._shell.error = None
        done = self._shell.run_cell(cell.source, store_history=True)
        error: BaseException | None = done.error_before_exec or done.error_in_exec
        return error or self._shell.error


def as_python(source: str) -> str:
    """Return the Python that IPython makes of a cell."""
    manager: Any = TransformerManager
    return str(manager().transform_cell(source))


def prepare(
    shell: Any,
    program: Program,
    targets_tf1: bool | None,
    left_out: Collection[str] = (),
) -> None:
    """Let the cells and the files of a shell find the program's TensorFlow."""
    shell.ast_transformers.append(Cells(targets_tf1, left_out))
    _prepare_files(shell, program)
    if _VERSION_MAGIC not in shell.magics_manager.magics["line"]:
        shell.register_magic_function(_version, magic_name=_VERSION_MAGIC)


def _prepare_files(shell: Any, program: Program) -> None:
    """Let `%run` compile a file as the program's own.

    The shell may be one of a running kernel, so that its own compiler stays.
    """

    def compile_file(source: bytes, filename: Any, symbol: str) -> Any:
        return OwnLoader("__main__", os.fspath(filename), program).get_code("__main__")

    def run(
        run_file: Callable[..., None], /, fname: Any, *where: Any, **more: Any
    ) -> None:
        with patching.patched(shell, compile=compile_file):
            # `shell_futures` lets the shell's compiler compile the file.
            run_file(fname, *where, **{**more, "shell_futures": True})

    patching.wrap(shell, safe_execfile=run)


def _version(line: str) -> None:
    """Run Colab's `%tensorflow_version 1.x`: the program's world is that already."""
