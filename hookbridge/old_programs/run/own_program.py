"""A program that runs: its own files, its world, and the guests that join it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookbridge.jobs.loops.tasks.local_task import GROUP_STOP
from hookbridge.old_programs.reading.one_file.evidence import Evidence
from hookbridge.old_programs.reading.one_file.modules import Module, Unread, read_module
from hookbridge.old_programs.reading.one_file.notebooks import Notebook
from hookbridge.old_programs.reading.whole_programs.meaning import shows_tf1
from hookbridge.old_programs.reading.whole_programs.program_files import read_program
from hookbridge.old_programs.reading.whole_programs.programs import Programs
from hookbridge.old_programs.reading.whole_programs.removed_imports import (
    unused_absent_imports,
    unused_removed_imports,
)
from hookbridge.old_programs.run import world
from hookbridge.old_programs.run.located import Launch, Located, OwnCode

if TYPE_CHECKING:  # it imports TensorFlow
    from hookbridge.old_programs.run.joining.joiner import Joiner


class Program:
    """A program's own files and its world, which is entered when a file needs it."""

    def __init__(
        self,
        launch: Launch,
        code: OwnCode,
        evidence: Mapping[str, Evidence],
        notebook: Notebook | None = None,
        left_out: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.code: OwnCode = code
        self.notebook = notebook  # what the main file is, if it is one
        self._launch = launch
        # Real path -> imports that nothing uses, of what was removed or is absent.
        self._left_out = left_out or {}
        self._evidence = dict(evidence)
        # Real paths of the files read before it runs: these are part of the program,
        # wherever they lie.
        self._read = set(map(os.path.realpath, evidence))
        self.world: world.World = world.decide(list(self._evidence.values()), launch)
        self.entered: bool = False
        self._joiner: Joiner | None = None

    def left_out(self, file: str) -> frozenset[str]:
        """Return the imports of a file that fail and that nothing uses."""
        return self._left_out.get(os.path.realpath(file), frozenset())

    @property
    def uses_tensorflow(self) -> bool:
        """Return whether a flag chooses its world, or a file uses TensorFlow."""
        if self._launch.keras is not None or self._launch.v1 is not None:
            return True
        return any(e.tensorflow for e in self._evidence.values())

    def evidence(self, file: str) -> Evidence:
        """Return the evidence of one file.

        A file that `read_program` missed is read now.
        """
        if file not in self._evidence:
            module = read_module(file)
            if isinstance(module, Unread):
                return Evidence()
            self._evidence[file] = module.evidence
            if not self.entered:
                self.world = world.decide(list(self._evidence.values()), self._launch)
        return self._evidence[file]

    def enter(self) -> None:
        """Enter the world, once."""
        if not self.entered:
            self.entered = True
            world.enter(self.world)
            # These import TensorFlow, so they must come after `world.enter`.
            from hookbridge.old_programs.run import converted

            converted.follow()
            if os.environ.get(GROUP_STOP):
                from hookbridge.old_programs.run.joining import group_stop

                group_stop.join()
            if self._launch.guests is not None or self._launch.record is not None:
                self._join(self._launch)

    def _join(self, launch: Launch) -> None:
        """Let guests of a file, or a recorder, join every training from now on."""
        from hookbridge.old_programs.run.joining import estimator_calls, fits, sessions
        from hookbridge.old_programs.run.joining.guest_file import GuestFile, Recorders
        from hookbridge.old_programs.run.joining.joiner import Joiner

        guests: Any = None
        if launch.guests is not None:
            guests = GuestFile(launch.guests)
        if launch.record is not None:
            guests = Recorders(*launch.record, guests)
        steps, is_own = launch.steps_per_epoch, self.code.is_by_author
        self._joiner = Joiner(guests, steps, is_own)
        if world.has_estimator(self.world):
            estimator_calls.join(self._joiner)
        sessions.join(self._joiner)
        fits.join(self._joiner)

    def report(self) -> list[str]:
        """Return the lines to print at the end about guests from outside."""
        return self._joiner.report() if self._joiner else []

    def enter_for(self, file: str) -> bool | None:
        """Enter the world if a file that is loaded now imports TensorFlow.

        Returns:
          Whether it means TensorFlow 1; None if it imports no TensorFlow.
        """
        if self.code.is_old_library(file):
            return True
        evidence = self.evidence(file)
        if not evidence.tensorflow:
            return None
        self.enter()
        if self.code.is_inside(file) or os.path.realpath(file) in self._read:
            return self.world.meaning.targets_tf1(evidence)
        return shows_tf1(evidence)


def program_of(launch: Launch, located: Located) -> Program:
    """Read the files of a program; nothing of it runs yet."""
    own_code = OwnCode(located.folder, launch.old_libraries)
    programs = read_program([located.file, *located.others], own_code.roots())
    modules = programs.modules
    evidence = {module.file: module.evidence for module in modules}
    left_out = {module.path: _unused_imports(module, programs) for module in modules}
    return Program(launch, own_code, evidence, modules[0].notebook, left_out)


def _unused_imports(module: Module, programs: Programs) -> frozenset[str]:
    """Return the imports that are left out, since they fail and nothing uses them."""
    absent = {import_.full for import_ in unused_absent_imports(module, programs)}
    return unused_removed_imports(module, programs) | absent
