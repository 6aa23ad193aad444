"""The exception tree: one base, a builtin for each, and readable messages."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from pathlib import Path

import pytest
from fork_server import ForkServer
from source_trees import Nodes, nodes_of, sources

from hookbridge import errors

ONE_TENSORFLOW = True
ALL = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.HookBridgeError) and cls is not errors.HookBridgeError
]


def test_every_error_is_also_a_builtin_and_says_when_it_is_raised(
    subtests: pytest.Subtests,
) -> None:
    for cls in ALL:
        with subtests.test(str(cls)):
            own = [
                base
                for base in cls.__mro__
                if getattr(builtins, base.__name__, None) is base
                and base not in (Exception, BaseException, object)
            ]
            assert own, f"{cls.__name__} derives from no builtin error"
            assert (cls.__doc__ or "").startswith("Raised ")
            assert (
                str(cls("received `x`; expected `y`")) == "received `x`; expected `y`"
            )


def test_each_error_is_raised(tmp_path: Path, fork_server: ForkServer) -> None:
    program = Path(__file__).parent.parent / "examples" / "every_error.py"
    text = program.read_text("utf-8")
    done = fork_server.run("-c", text, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {cls.__name__ for cls in ALL if f"errors.{cls.__name__}," not in text} == {
        # They need a training, another process, or another installation.
        *("GuestFailedError", "NeverCalledError", "TaskLostError"),
        *("MissingExtraError", "ImportOrderError", "PrivateNameMovedError"),
    }


# Errors that never leave the package -> the folder that handles them, and how.
INTERNAL = {
    "UnknownConditionError": "old programs: a condition that reading does not decide",
    "_GraphSeenError": "adapters: ends an evaluation of which only names are wanted",
    "ClusterFailure": "adapters: the queue of remote steps; its cause is raised",
    "EndOfLoop": "adapters: ends a loop of one's own from inside; nobody else sees it",
    "GroupStopped": "loops: ends a session that another process has stopped",
    "NotStorableError": "adapters: what a state file leaves out",
    "UnknownStructureError": "loops: such fetches are left to TensorFlow",
}


def error_classes(nodes: Nodes) -> list[str]:
    """The exception classes that a file defines, found by the names of their bases."""
    known = re.compile(r"(Error|Exception|Exit|Interrupt|StopIteration)$|^errors\.")
    return [
        node.name
        for node in nodes
        if isinstance(node, ast.ClassDef)
        and any(known.search(ast.unparse(base)) for base in node.bases)
    ]


def test_every_error_class_is_in_one_file_or_stays_inside() -> None:
    found = {file: set(error_classes(nodes)) for file, nodes in sources().items()}
    home = found.pop("hookbridge/errors.py")
    assert set().union(*found.values()) == set(INTERNAL)
    assert home == {c.__name__ for c in ALL} | {"HookBridgeError"}


@pytest.mark.parametrize(
    "base", ["Exception", "ValueError", "errors.RefusedError", "tf.errors.OpError"]
)
def test_the_search_finds_what_it_looks_for(base: str) -> None:
    assert error_classes(nodes_of(f"class Odd({base}):\n    pass\n")) == ["Odd"]
