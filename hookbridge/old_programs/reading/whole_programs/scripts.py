"""What a file does when it runs: is it a program, or does it only define names?"""

from __future__ import annotations

import ast
from pathlib import PurePath

from hookbridge.old_programs.reading.one_file.evidence import is_test_case
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.tf1_names.syntax import nodes_inside


def is_script(module: Module) -> bool:
    """Return whether a file runs by itself: a notebook, or with `__main__`."""
    return module.notebook is not None or any(
        _called_name(statement).endswith("app.run")
        or (isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test))
        for statement in module.tree.body
    )


def is_test(module: Module) -> bool:
    """Return whether pytest takes a file for tests.

    A text without a file may be one, too.
    """
    name = PurePath(module.file).name
    if name and not (name.startswith("test_") or name.endswith("_test.py")):
        return False
    return any(
        (isinstance(node, ast.FunctionDef) and node.name.startswith("test"))
        or (isinstance(node, ast.ClassDef) and node.name.startswith("Test"))
        or is_test_case(node)
        for node in module.tree.body
    )


def _called_name(statement: ast.stmt) -> str:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return ast.unparse(call.func) if isinstance(call, ast.Call) else ""


def does_something(module: Module) -> bool:
    """Return whether a file does more than define names and settings when it runs."""
    return is_script(module) or is_test(module) or runs_statements(module)


def runs_statements(module: Module) -> bool:
    """Return whether an import of a file does more than define names and settings."""
    needs_v1 = module.evidence.needs_v1
    for statement in module.tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.With | ast.For | ast.While):
            return True
        end = statement.end_lineno or statement.lineno
        if needs_v1 is not None and statement.lineno <= needs_v1.line <= end:
            return True
        nodes = nodes_inside(statement, _runs_later)
        if any(isinstance(n, ast.Call) and _is_own(n, module) for n in nodes):
            return True
        if name := _called_name(statement):
            is_setting = "DEFINE_" in name or name.endswith("set_verbosity")
            imported_one = module.names.bound.get(name.partition(".")[0], "tensorflow")
            if imported_one.startswith("tensorflow") and not is_setting:
                return True
    return False


def _runs_later(node: ast.AST) -> bool:
    """Return whether what is inside of it does not run where it stands."""
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda)


def _is_own(call: ast.Call, module: Module) -> bool:
    """Return whether a function or a class of the program is called."""
    name = ast.unparse(call.func)
    first = name.partition(".")[0]
    if any(getattr(statement, "name", "") == first for statement in module.tree.body):
        return True
    whole = f"{module.names.bound.get(first, '')}{name[len(first) :]}."
    return any(
        whole.startswith(f"{own_module}.") for own_module in module.names.by_module
    )
