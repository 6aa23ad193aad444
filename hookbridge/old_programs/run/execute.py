"""Runs a program as `python PROGRAM.py` does, in the world that it needs."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec

from hookbridge.old_programs.reading.one_file.notebooks import Notebook
from hookbridge.old_programs.run import (
    by_path,
    children,
    notebook_cells,
    own_modules,
    tracebacks,
    world,
)
from hookbridge.old_programs.run.located import Launch, Located, locate
from hookbridge.old_programs.run.own_modules import OwnLoader
from hookbridge.old_programs.run.own_program import Program

# With its own way of assertions pytest would load the program's modules by itself.
_PYTEST_OPTION = "--assert=plain"


def prepare(launch: Launch) -> Callable[[], int]:
    """Read the program and enter its world; what is returned runs the program."""
    world.check_not_imported()
    # `python -P` does not put the program's folder into `sys.path`.
    puts_folder = not getattr(sys.flags, "safe_path", False)
    if launch.as_module and puts_folder:
        sys.path[0] = os.getcwd()
    located = locate(launch)
    if puts_folder:
        sys.path[0] = located.folder
    program = own_modules.read_and_hook_imports(launch, located)
    by_path.follow(program)
    if program.notebook is not None:
        notebook_cells.check(program.notebook, located.argv0)
    if program.uses_tensorflow:
        base = os.path.basename(located.file)
        name = launch.program if base == "__main__.py" else base
        print(f"hookbridge run: {name}: {program.world.describe()}", file=sys.stderr)
        program.enter()
    children.inherit(launch)

    def run() -> int:
        try:
            return run_main(launch, located, program)
        finally:
            for line in program.report():
                print(line, file=sys.stderr)

    return run


def run_main(launch: Launch, located: Located, program: Program) -> int:
    """Run the main file as `__main__`."""
    if launch.as_module and launch.program == "pytest":
        # Tests may look at `sys.argv`, which stays as it is.
        options = os.environ.get("PYTEST_ADDOPTS", "")
        os.environ["PYTEST_ADDOPTS"] = f"{options} {_PYTEST_OPTION}".strip()
    sys.argv[:] = [located.argv0, *launch.arguments]
    if program.notebook is not None:
        return _run_notebook(program.notebook, located, program)
    loader = OwnLoader("__main__", located.file, program)
    module = types.ModuleType("__main__")
    spec = located.spec
    if spec is not None:
        spec = ModuleSpec(spec.name, loader, origin=spec.origin)
        spec.has_location = True
    module.__dict__.update(
        __file__=located.file,
        __loader__=loader,
        __package__=spec.parent if spec else None,
        __spec__=spec,
        __builtins__=sys.modules["builtins"],
    )
    sys.modules["__main__"] = module
    with tracebacks.of_program_only():
        located.import_packages()
        exec(loader.get_code("__main__"), module.__dict__)
    return 0


def _run_notebook(notebook: Notebook, located: Located, program: Program) -> int:
    """Run the cells in the notebook's folder, as Jupyter does."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"])
    sys.modules["__main__"] = main
    os.chdir(located.folder)
    return notebook_cells.run(notebook, located, program, main)
