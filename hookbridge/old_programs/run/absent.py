"""Imports of packages that are not installed, and of which nothing is used."""

from __future__ import annotations

import ast
import importlib.util
import sys

_STATEMENT = """\
try:
    pass
except ModuleNotFoundError as __hookbridge__error__:
    __import__({module!r}, fromlist=["leave_out"]).leave_out(
        __hookbridge__error__, {root!r}
    )
"""


def is_absent(root: str) -> bool:
    """Return whether a top module cannot be imported now.

    The program may add its folder.
    """
    return root not in sys.modules and importlib.util.find_spec(root) is None


def try_import(node: ast.Import | ast.ImportFrom, root: str) -> ast.stmt:
    """Return a statement that tries an import; only its top module may fail."""
    text = _STATEMENT.format(module=__name__, root=root)
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Try)
    for part in ast.walk(statement):
        ast.copy_location(part, node)
    statement.body = [node]
    return statement


def leave_out(error: ModuleNotFoundError, root: str) -> None:
    """Tell that an import is left out.

    It may be there for what it does when it is imported: nobody knows that here.
    """
    if error.name != root or error.__traceback__ is None:
        raise error
    code = error.__traceback__.tb_frame.f_code
    position = f"{code.co_filename}:{error.__traceback__.tb_lineno}"
    print(
        f"hookbridge run: {position}: {root} is not installed and nothing uses it, so "
        "its import is skipped",
        file=sys.stderr,
    )
