"""What a program needs that the installed TensorFlow lacks, and who can mend it.

Nothing is run and TensorFlow is not imported: the files are parsed.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hookbridge.ground.imports import extras
from hookbridge.old_programs.reading.names.import_statements import (
    imports,
    loaded_module,
)
from hookbridge.old_programs.reading.one_file.modules import Module, Unread
from hookbridge.old_programs.reading.whole_programs import packages, started
from hookbridge.old_programs.reading.whole_programs.libraries import old_libraries
from hookbridge.old_programs.reading.whole_programs.program_files import read_programs
from hookbridge.old_programs.reading.whole_programs.programs import Programs
from hookbridge.old_programs.reading.whole_programs.removed_imports import (
    is_absent,
    missing_modules,
    removed_imports,
    unused_absent_imports,
)
from hookbridge.old_programs.reading.whole_programs.uses_in_packages import (
    uses_in_packages,
)
from hookbridge.old_programs.scanning.child_programs import child_programs
from hookbridge.old_programs.scanning.findings import (
    Finding,
    Report,
    finding_at,
    num_places,
)
from hookbridge.old_programs.scanning.removed_modules import by_removed_module
from hookbridge.old_programs.scanning.scan import UNUSED_WAY, findings_of
from hookbridge.tf1_names.removed_in_libraries import removed_part
from hookbridge.tf1_names.syntax import is_below
from hookbridge.tf1_names.target import Target

# A rewrite does not look into other libraries.
_KEPT = {"rewrite": ""}


@dataclass(frozen=True)
class Diagnosis:
    """What the programs in some files need, and what they import in vain."""

    # The places by file and line; those that are left to a person come first.
    report: Report
    absent: tuple[str, ...] = ()  # modules that the programs import, not installed
    # What the programs need beside TensorFlow and this machine lacks, in sentences.
    missing: tuple[str, ...] = ()
    # The command that runs it, with the folder in which to give it, if that matters.
    command: str = "hookbridge run"
    folder: str = ""

    @property
    def left(self) -> int:
        """Number of places and files that are left to a person."""
        report = self.report
        return num_places(f for f in report.findings if f.person) + len(report.unread)


def diagnose(
    paths: Iterable[str | os.PathLike[str]], target: str, module: str = ""
) -> Diagnosis:
    """List what the programs in files and folders need and the target lacks.

    The modules of a program that its files import are read, as `run` reads them.
    `module` is the one that `-m` names, in place of paths.
    """
    names = Target(target)
    if module:
        programs, unread = read_programs(started.files_of(module), os.getcwd())
    else:
        programs, unread = read_programs(paths)
    findings = [
        finding
        for module in programs.modules
        for finding in findings_of(module, programs.in_program(module), names)
    ]
    findings += _of_libraries(programs)
    findings += _not_in_libraries(programs)
    for program_module in programs.modules:
        findings += child_programs(program_module, programs)
    findings = list(by_removed_module(findings, names))
    findings = [dataclasses.replace(f, file=shown_path(f.file)) for f in findings]
    findings.sort(key=lambda f: (not f.person, f.file, f.cell, f.line, f.column))
    left_out = tuple(Unread(shown_path(u.file), u.reason) for u in unread)
    return Diagnosis(
        Report(target, len(programs.modules), tuple(findings), left_out),
        tuple(sorted(set(_absent(programs)))),
        tuple(dict.fromkeys(_missing(programs))),
        *_command(programs, module),
    )


def shown_path(path: str) -> str:
    """Return a path as a reader sees it: relative if below the working directory."""
    whole, here = os.path.abspath(path), os.path.join(os.getcwd(), "")
    return whole.removeprefix(here) if path else path


def _command(programs: Programs, module: str) -> tuple[str, str]:
    """Return the command that runs a program, and the folder in which to give it."""
    command = "hookbridge run"
    if module:
        return f"{command} -m {module}", ""
    mains = [m for m in programs.given if programs.in_program(m).is_run]
    named = started.by_name(mains[0], programs) if len(mains) == 1 else None
    return (f"{command} -m {named.name}", named.folder) if named else (command, "")


def _missing(programs: Programs) -> Iterator[str]:
    """Say what the programs need beside TensorFlow, and how to get it."""
    for module in programs.modules:
        in_program = programs.in_program(module)
        if in_program.is_main:
            meaning = in_program.of_main
            for why, modules in packages.missing(meaning, meaning.keras2):
                yield f"the program ({why}) needs {extras.absent(modules)}"


def _absent(programs: Programs) -> Iterator[str]:
    """Yield modules that are neither installed nor in the folders of their program.

    Those that a package of the program lacks have dots in their names.
    """
    for module in programs.modules:
        if module.notebook is not None and module.notebook.uses_ipython:
            yield from () if extras.is_installed("IPython") else ("IPython",)
            packages = module.notebook.packages
            yield from (p for p in packages if is_absent(p, module, programs))
        yield from missing_modules(module, programs)
        unused = {import_.full for import_ in unused_absent_imports(module, programs)}
        for node in module.unguarded:
            for name in _imported_name(node):
                if name not in unused and is_absent(name, module, programs):
                    yield name.partition(".")[0]


def _of_libraries(programs: Programs) -> Iterator[Finding]:
    """Yield a finding at the import of each package that needs `hookbridge run`.

    It means TensorFlow 1, or uses names that NumPy removed.
    """
    for module in programs.modules:
        way = "a package for TensorFlow 2, or its code in the program"
        for name, use in old_libraries(module):
            yield from _at_import(module, name, "OLD_LIBRARY", f"{name} ({use})", way)
        for name, use, number in uses_in_packages(module):
            more = f", and {number - 1} more" if number > 1 else ""
            way = f"a newer release of {name}, or `hookbridge run`"
            yield from _at_import(
                module, name, "LIBRARY_LOSS", f"{name} ({use}{more})", way
            )


def _at_import(
    module: Module, package: str, code: str, name: str, way: str
) -> Iterator[Finding]:
    """Yield a finding at the first import of a package; other files may import it."""
    nodes = (
        n for n in module.nodes if any(is_below(i, package) for i in _imported_name(n))
    )
    for node in itertools.islice(nodes, 1):
        yield finding_at(module, node, code, name, way)


def _not_in_libraries(programs: Programs) -> Iterator[Finding]:
    """Yield a finding for each imported name that its library certainly lacks.

    And for each import of what is not installed, if nothing uses it.
    """
    for module in programs.modules:
        for import_ in unused_absent_imports(module, programs):
            node, name = import_.node, import_.full
            yield finding_at(module, node, "UNUSED_IMPORT", name, UNUSED_WAY, _KEPT)
        for import_ in removed_imports(module, programs):
            if removed_part(import_.full):
                continue  # the scan has it
            root = import_.full.partition(".")[0]
            code = "LIBRARY_NAME"
            way = f"its current name in {root}, or an older release of {root}"
            if programs.names.is_unused(module, import_.bound):
                code, way = "UNUSED_IMPORT", UNUSED_WAY
            yield finding_at(module, import_.node, code, import_.full, way, _KEPT)


def _imported_name(node: ast.AST) -> set[str]:
    """Return what a statement or a call imports from elsewhere."""
    names = {*(import_.full for import_ in imports(node)), loaded_module(node)}
    return {name for name in names if name.partition(".")[0]}
