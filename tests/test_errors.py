"""The exception tree: one base, a builtin for each, and readable messages."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from pathlib import Path

import pytest
from fork_server import ForkServer

from hookbridge import errors

ALL = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.HookBridgeError) and cls is not errors.HookBridgeError
]


@pytest.mark.parametrize("cls", ALL)
def test_every_error_is_also_a_builtin(cls: type[Exception]) -> None:
    own = [
        base
        for base in cls.__mro__
        if getattr(builtins, base.__name__, None) is base
        and base not in (Exception, BaseException, object)
    ]
    assert own, f"{cls.__name__} derives from no builtin error"


@pytest.mark.parametrize("cls", ALL)
def test_every_error_says_when_it_is_raised(cls: type[Exception]) -> None:
    assert (cls.__doc__ or "").startswith("Raised ")


@pytest.mark.parametrize("cls", ALL)
def test_message_is_shown_as_given(cls: type[Exception]) -> None:
    assert str(cls("received `x`; expected `y`")) == "received `x`; expected `y`"


def test_each_error_is_raised(tmp_path: Path, fork_server: ForkServer) -> None:
    program = Path(__file__).parent.parent / "examples" / "every_error.py"
    done = fork_server.run("-c", program.read_text("utf-8"), folder=tmp_path)
    assert done.returncode == 0, done.stderr


# Errors that never leave the package -> the folder that handles them, and how.
INTERNAL = {
    "ClusterFailure": "adapters: the queue of remote steps; its cause is raised",
    "EndOfLoop": "adapters: ends a loop of one's own from inside; nobody else sees it",
    "GroupStopped": "loops: ends a session that another process has stopped",
    "NotStorableError": "adapters: what a state file leaves out",
    "UnknownStructureError": "loops: such fetches are left to TensorFlow",
}


def error_classes(file: Path) -> list[str]:
    """The exception classes that a file defines, found by the names of their bases."""
    known = re.compile(r"(Error|Exception|Exit|Interrupt|StopIteration)$|^errors\.")
    return [
        node.name
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(known.search(ast.unparse(base)) for base in node.bases)
    ]


def test_every_error_class_is_in_one_file_or_stays_inside(repo_root: Path) -> None:
    home = repo_root / "hookbridge" / "errors.py"
    files = [
        *(repo_root / "adapters").glob("**/*.py"),
        *(f for f in (repo_root / "hookbridge").glob("**/*.py") if f != home),
    ]
    assert len(files) > 100
    found = {name for file in files for name in error_classes(file)}
    assert found == set(INTERNAL)
    assert set(error_classes(home)) == {c.__name__ for c in ALL} | {"HookBridgeError"}


@pytest.mark.parametrize(
    "base", ["Exception", "ValueError", "errors.RefusedError", "tf.errors.OpError"]
)
def test_the_search_finds_what_it_looks_for(base: str, tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(f"class Odd({base}):\n    pass\n")
    assert error_classes(tmp_path / "sample.py") == ["Odd"]
