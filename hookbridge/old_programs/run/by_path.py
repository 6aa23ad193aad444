"""Files that a program loads by their paths: they are its own, like those it imports.

Programs keep their settings in such files. `runpy.run_path` runs one,
`importlib.util.spec_from_file_location`, `SourceFileLoader` and `imp.load_source` make
a module of one.
"""

from __future__ import annotations

import os
import runpy
import sys
import types
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from typing import Any

from hookbridge.ground import patching
from hookbridge.old_programs.run.own_modules import OwnLoader
from hookbridge.old_programs.run.own_program import Program


def follow(program: Program) -> None:
    """Let `OwnLoader` load these files too, until the process ends."""

    def code_of(
        get_code: Callable[..., Any], self: SourceFileLoader, /, fullname: str
    ) -> Any:
        path = os.path.abspath(self.get_filename(fullname))
        # A loader of another class has its own way.
        if type(self) is not SourceFileLoader or not program.code.is_adapted(path):
            return get_code(self, fullname)
        return OwnLoader(fullname, path, program).get_code(fullname)

    def run(
        run_path: Callable[..., dict[str, Any]],
        /,
        path_name: str,
        init_globals: Mapping[str, Any] | None = None,
        run_name: str | None = None,
    ) -> dict[str, Any]:
        path = os.path.abspath(os.fsdecode(path_name))
        if not path.endswith(".py") or not program.code.is_adapted(path):
            return run_path(path_name, dict(init_globals or {}), run_name)
        name = "<run_path>" if run_name is None else run_name
        code = OwnLoader(name, path, program).get_code(name)
        return _run(code, name, os.fsdecode(path_name), init_globals or {})

    patching.wrap(SourceFileLoader, get_code=code_of)
    patching.wrap(runpy, run_path=run)


def _run(
    code: types.CodeType, name: str, path: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Run a file as a module of some name, as `runpy` does; return its names."""
    module = types.ModuleType(name)
    space = vars(module)
    package = name.rpartition(".")[0]
    space.update(given)
    space.update(__name__=name, __file__=path, __cached__=None, __package__=package)
    before, above = sys.argv[0], sys.modules.get(name)
    sys.argv[0], sys.modules[name] = path, module
    try:
        exec(code, space)
    finally:
        sys.argv[0] = before
        if above is None:
            del sys.modules[name]
        else:
            sys.modules[name] = above
    return dict(space)
