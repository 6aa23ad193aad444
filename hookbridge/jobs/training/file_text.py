"""What the text of a user's file says, before the file is run."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from hookbridge import errors
from hookbridge.ground.arguments import why_no_file
from hookbridge.ground.imports.module_names import (
    blocks,
    bound_by_statement,
    called_name,
)
from hookbridge.ground.texts.nearest_names import nearest

# What a model definition file has, one of them.
MODELS = ("custom_model", "model_fn")
# Calls that train or evaluate, whatever they belong to.
_WORK = {
    "InteractiveSession",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "OwnLoop",
    "Session",
    "SingularMonitoredSession",
    "apply_gradients",
    "evaluate",
    "fit",
    "fit_generator",
    "managed_session",
    "predict",
    "train",
    "train_and_evaluate",
    "train_on_batch",
    "training_session",
}
# Calls by which a file may get names that its text does not show.
_DYNAMIC = {"exec", "globals", "setattr", "vars"}
_ALIKE = 0.8  # of `difflib`: `callback` and `callbacks` have 0.94
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def check_file(path: str, names: Sequence[str]) -> None:
    """Raise for a file that should not be run; TensorFlow is not needed for it.

    Args:
      path: the file.
      names: one of them is looked for in it.

    Raises:
      errors.InvalidArgumentError: the file is not a Python file, it has none of the
        names, or it would train while it is imported.
    """
    if not os.path.isfile(path):
        raise errors.InvalidArgumentError(
            f"Received the file {path!r}, which {why_no_file(path)}; expected a Python "
            "file."
        )
    text = FileText(path)
    if not text.may_have(names):
        wanted = " or ".join(f"`{name}`" for name in names)
        near_lists = nearest(names[0], text.lists())
        there = ", ".join(f"`{name}`" for name in near_lists)
        names_there = f"it has {there}" if there else "it defines no names"
        raise errors.InvalidArgumentError(
            f"{text.path} has no {wanted}, so it was not run; {names_there}."
        )
    text.check_no_work()


class FileText:
    """The statements of a Python file; a file that cannot be parsed has none.

    Args:
      path: the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            body = ast.parse(Path(path).read_bytes()).body
        except (SyntaxError, ValueError):
            body = []  # to run the file tells what is wrong, with the line
        self._is_parsed = bool(body)
        self._top = list(_top_level(body))
        self._body = body

    def bindings(self) -> dict[str, ast.stmt]:
        """Return `{name: statement}` for the names that the file's top level binds."""
        return {
            name: statement
            for statement in self._top
            for name in bound_by_statement(statement)
        }

    def lists(self) -> list[str]:
        """Return the names of the file's lists, or without lists of all it defines."""
        imports = (ast.Import, ast.ImportFrom)
        things = {
            k: v for k, v in self.bindings().items() if not isinstance(v, imports)
        }
        lists = [
            name
            for name, statement in things.items()
            if isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.List)
        ]
        return lists or list(things)

    def may_have(self, names: Collection[str]) -> bool:
        """Return whether the file has one of the names, as far as its text can tell."""
        if not self._is_parsed or not self.bindings().keys().isdisjoint(names):
            return True
        nodes = [node for statement in self._body for node in ast.walk(statement)]
        has_star = any(isinstance(n, ast.alias) and n.name == "*" for n in nodes)
        calls = {called_name(node) for node in nodes if isinstance(node, ast.Call)}
        return has_star or "__getattr__" in self.bindings() or bool(calls & _DYNAMIC)

    def check_no_work(self) -> None:
        """Raise if the file would train or evaluate while it is imported."""
        # Functions of the file that are called are read too, each of them once.
        unread = {
            statement.name: statement.body
            for statement in self._body
            if isinstance(statement, _FUNCTIONS)
        }
        functions = set(unread)
        waiting = [(call, call) for call in _calls(self._top)]
        while waiting:
            call, origin = waiting.pop(0)
            name = called_name(call)
            if isinstance(call.func, ast.Name) and name in functions:
                body = _top_level(unread.pop(name, []))
                waiting += [(inner, origin) for inner in _calls(body)]
            elif name in _WORK or ast.unparse(call.func).endswith("app.run"):
                raise self._work(call, origin)

    def check_names(self, known: Sequence[str]) -> None:
        """Raise if a name that nothing in the file uses is nearly a known one.

        Args:
          known: the names that are looked for in the file.
        """
        bindings = self.bindings()
        missing = [name for name in known if name not in bindings]
        ignored = self._used() | set(known)
        for name, statement in bindings.items():
            if name in ignored or not _may_be_misspelt(name, statement):
                continue
            matches = difflib.get_close_matches(name, missing, 1, _ALIKE)
            if matches:
                raise errors.InvalidArgumentError(
                    f"{self.path}, line {statement.lineno}: nothing uses `{name}`; did "
                    f"you mean `{matches[0]}`? If it is something else, begin its name "
                    "with an underscore."
                )

    def _used(self) -> set[str]:
        """Return the names that something in the file reads."""
        nodes = [node for statement in self._body for node in ast.walk(statement)]
        return {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }

    def _work(self, call: ast.Call, origin: ast.Call) -> Exception:
        """Return the error for a call that trains while the file is imported."""
        calls = f"`{ast.unparse(call.func)}(...)`"
        if origin.lineno != call.lineno:
            calls += f" (line {call.lineno})"
        return errors.InvalidArgumentError(
            f"{self.path}, line {origin.lineno}: importing the file would run "
            f"{calls}; expected a file that only defines things. Put the work into a "
            'function, or below `if __name__ == "__main__":`.'
        )


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import runs: those in blocks too, but `__main__`."""
    for statement in body:
        yield statement
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            yield from _top_level(statement.orelse)
            continue
        for block in blocks(statement):
            yield from _top_level(block)


def _run_at_once(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions that run with one statement, and not with its blocks."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        is_inner = node is not statement and isinstance(node, ast.stmt)
        if not is_inner and not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _calls(statements: Iterable[ast.stmt]) -> list[ast.Call]:
    """Return the calls that run with the statements."""
    nodes = [node for statement in statements for node in _run_at_once(statement)]
    return [node for node in nodes if isinstance(node, ast.Call)]


def _may_be_misspelt(name: str, statement: ast.stmt) -> bool:
    """Return whether the file defines the name itself, for somebody to look it up."""
    is_own = isinstance(statement, (*_FUNCTIONS, ast.Assign, ast.AnnAssign))
    has_decorator = bool(getattr(statement, "decorator_list", ()))
    return is_own and not has_decorator and not name.startswith("_")
