"""Gives the program's world to the processes that `multiprocessing` spawns.

A spawned child gets a message from its parent before it imports the program. An item
is added to that message; unpickling the item prepares the child. A forked child needs
nothing.
"""

from __future__ import annotations

import multiprocessing.spawn
import sys
from collections.abc import Callable
from typing import Any

from hookbridge.ground import patching
from hookbridge.old_programs.run import by_path, own_modules
from hookbridge.old_programs.run.located import Launch, Located, locate
from hookbridge.old_programs.run.own_modules import OwnLoader
from hookbridge.old_programs.run.own_program import Program

# The module that a child runs in the place of the program's main file.
SPAWNED = "hookbridge.old_programs.run.spawned"
# The program of this process, if this process is a spawned child.
_in_child: dict[str, tuple[Located, Program]] = {}


class Inherited:
    """The added item of the message: unpickling it calls `start` in the child."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Launch, list[str]]]:
        return start, (self._launch, sys.path)


def inherit(launch: Launch) -> None:
    """Add the item to the message of every child that this process will spawn."""

    def with_world(
        get_preparation_data: Callable[[str], dict[str, Any]], /, name: str
    ) -> dict[str, Any]:
        data = get_preparation_data(name)
        data["hookbridge"] = Inherited(launch)
        if data.pop("init_main_from_path", None) is not None:
            data["init_main_from_name"] = SPAWNED
        return data

    patching.wrap(multiprocessing.spawn, get_preparation_data=with_world)


def start(launch: Launch, path: list[str]) -> None:
    """Prepare a child process for its parent's program, whose `sys.path` it gets."""
    sys.path[:] = path  # the same message sets it too, but only after this
    located = locate(launch)
    program = own_modules.read_and_hook_imports(launch, located)
    by_path.follow(program)
    _in_child["program"] = located, program
    inherit(launch)


def run_main(space: dict[str, Any]) -> None:
    """Run the program's main file in a child, whose `__name__` is `__mp_main__`."""
    located, program = _in_child["program"]
    loader = OwnLoader(space["__name__"], located.file, program)
    space.update(__file__=located.file, __loader__=loader, __spec__=None)
    located.import_packages()
    exec(loader.get_code(space["__name__"]), space)
