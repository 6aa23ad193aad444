"""Finds and loads the program's own modules, with their view of TensorFlow."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

from hookbridge.old_programs.run.located import Launch, Located
from hookbridge.old_programs.run.own_program import Program, program_of
from hookbridge.old_programs.run.restored import old_libraries
from hookbridge.old_programs.run.statements import as_run, is_changed


class OwnLoader(SourceFileLoader):
    """Loads one of the program's own files."""

    def __init__(self, name: str, path: str, program: Program) -> None:
        super().__init__(name, path)
        self._program = program

    def get_code(self, fullname: str) -> Any:
        """Compile the file; `__pycache__` is neither read nor written."""
        path = self.get_filename(fullname)
        data = self.get_data(path)
        targets_tf1 = self._program.enter_for(path)
        left_out = self._program.left_out(path)
        if not is_changed(data, targets_tf1, left_out):
            return compile(data, path, "exec", dont_inherit=True)
        tree: Any = compile(data, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        tree = as_run(tree, targets_tf1, left_out)
        return compile(tree, path, "exec", dont_inherit=True)


class OwnFinder:
    """Finds the program's own modules, and files of old libraries that lack names."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        loader = spec.loader
        if self._program.code.is_adapted(loader.path):
            spec.loader = OwnLoader(loader.name, loader.path, self._program)
        elif old_libraries.is_one(loader.path):
            spec.loader = old_libraries.OldLibraryLoader(loader.name, loader.path)
        else:
            return None
        return spec


def read_and_hook_imports(launch: Launch, located: Located) -> Program:
    """Read a program, and let `OwnLoader` load its own modules from now on."""
    program = program_of(launch, located)
    sys.meta_path.insert(0, OwnFinder(program))
    return program
