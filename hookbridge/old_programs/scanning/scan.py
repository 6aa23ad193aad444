"""Scans files for hooks, callbacks, Estimators and names that the target lacks."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hookbridge.old_programs.reading.names.import_statements import (
    imports,
    loaded_module,
)
from hookbridge.old_programs.reading.names.named_uses import uses
from hookbridge.old_programs.reading.one_file import old_callbacks
from hookbridge.old_programs.reading.one_file.evidence import Use
from hookbridge.old_programs.reading.one_file.keras_signs import new_keys
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.one_file.python2 import FROM_PYTHON_2
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.reading.whole_programs.program_files import read_programs
from hookbridge.old_programs.scanning import calls, guests, private_keras
from hookbridge.old_programs.scanning.earlier_releases import of_earlier_releases
from hookbridge.old_programs.scanning.findings import (
    CODES,
    COMMENTS,
    Finding,
    Report,
    finding_at,
    sort_key,
)
from hookbridge.old_programs.scanning.gpu_readers import readers_on_gpu
from hookbridge.old_programs.scanning.python2_uses import python2_uses
from hookbridge.old_programs.scanning.version_checks import of_versions
from hookbridge.tf1_names import contrib_names
from hookbridge.tf1_names.outcome import Resolution
from hookbridge.tf1_names.private_names import HIDDEN_PACKAGES
from hookbridge.tf1_names.removed_in_libraries import (
    removed_names,
)
from hookbridge.tf1_names.resolution import way_of_attribute
from hookbridge.tf1_names.syntax import enclosing
from hookbridge.tf1_names.target import NEWEST, Target

_KERAS2_WAY = "`TF_USE_LEGACY_KERAS=1` before TensorFlow is imported"
_V1_IMPORT = "`import tensorflow.compat.v1 as tf`"
# Parts of TensorFlow that mean the same in each file.
_PARTS = ("tensorflow.compat", *HIDDEN_PACKAGES)
_PUBLIC_WAY = "the public names of what is read by it"
_PIN_WAY = "a comment"
UNUSED_WAY = "the program without this import"
_ESTIMATOR_WAY = "`hb.estimator.install()` before it is imported"
_CALLBACK_WAY = "an argument of the callback's constructor"
_SESSION_WAY = "`hb.legacy.share_keras_session()` before the first model"
_V1_WAY = "`tf.compat.v1.disable_v2_behavior()` first thing in the program"


def scan(paths: Iterable[str | os.PathLike[str]], *, target: str = NEWEST) -> Report:
    """Find the places that matter for the move of a program to a newer TensorFlow.

    Nothing is executed and TensorFlow is not imported: files are parsed only. A file
    that cannot be read or parsed is reported, and the rest is still scanned. What a
    file means may follow from the files of its program; these are read, too.

    Args:
      paths: files and folders; in folders, `*.py` and `*.ipynb` are read.
      target: the version of TensorFlow that the code has to run on.

    Returns:
      All findings in these files, worst verdict first.

    Raises:
      errors.InvalidArgumentError: a path does not exist, or the names of the target
        are not known.
    """
    names_of_target = Target(target)
    programs, unread = read_programs(paths)
    findings: list[Finding] = []
    for module in programs.given:
        findings += findings_of(module, programs.in_program(module), names_of_target)
        findings += guests.sites(module)
    findings += guests.classes(guests.Guests(programs.modules), programs.given)
    ordered = tuple(sorted(findings, key=sort_key))
    return Report(target, len(programs.given), ordered, tuple(unread))


def findings_of(module: Module, in_program: InProgram, target: Target) -> list[Finding]:
    """Return what the target lacks of one module, by line.

    Args:
      module: the module.
      in_program: what its program says of it.
      target: the TensorFlow that it has to run on.
    """
    findings = [
        *_names(module, in_program, target),
        *_switches(module, in_program, target),
    ]
    pins = module.notebook.old_pins if module.notebook is not None else ()
    for line, text in pins:
        findings += [finding_at(module, None, "OLD_PIN", text, _PIN_WAY, first=line)]
    for node in module.nodes:
        if isinstance(node, ast.Call):
            findings += calls.of_call(module, in_program, node, target)
        elif isinstance(node, ast.Compare):
            findings += calls.exact_tensors(module, node)
        elif isinstance(node, ast.Assert | ast.If):
            findings += of_versions(module, in_program, node, target)
    if in_program.targets_tf1 and in_program.meaning.keras is not None:
        for name, line in new_keys(module.nodes):
            way = name.replace("accuracy", "acc")
            log = finding_at(module, None, "KERAS_LOG", name, f"`{way}`", first=line)
            findings.append(log)
    findings += readers_on_gpu(module, in_program.called_on_gpu)
    findings += of_earlier_releases(module)
    findings += _old_callbacks(module, in_program)
    findings += _session_of_threads(module, in_program)
    for use, name in python2_uses(module):
        findings.append(finding_at(module, use, "PYTHON_2", name, FROM_PYTHON_2))
    return sorted(findings, key=lambda f: (f.cell, f.line, f.column))


def _old_callbacks(module: Module, in_program: InProgram) -> Iterator[Finding]:
    """Find what its callbacks read that the program's Keras has set on them."""
    if in_program.meaning.keras is None:
        return
    for node, name in old_callbacks.reads(module.nodes):
        # `fit` of a program of TensorFlow 1 still fills `params`.
        is_data = name == f"self.{old_callbacks.DATA}"
        if is_data is in_program.meaning.is_of_v1:
            yield finding_at(module, node, "OLD_CALLBACK", name, _CALLBACK_WAY)


def _session_of_threads(module: Module, in_program: InProgram) -> Iterator[Finding]:
    """Find where a program starts threads whose Keras had the session of all."""
    threads, meaning = module.evidence.threads, in_program.meaning
    if threads is None or module.evidence.shared_session is not None:
        return
    if meaning.shares_keras_session:
        name, line = threads.name, threads.line
        yield finding_at(module, None, "KERAS_SESSION", name, _SESSION_WAY, first=line)


def _names(module: Module, in_program: InProgram, target: Target) -> Iterator[Finding]:
    """Yield every use of a TensorFlow name that the target lacks.

    What the program writes itself, and what it does without, is not reported.
    """
    imported = in_program.own_modules.values()
    members = (file.own_members for file in imported)
    used = uses(module.nodes, module.names, in_program.libraries, members)
    for node, name in _first_flag_only(used):
        if id(node) in module.guarded:
            continue
        outcome = in_program.outcome(name, target)
        if outcome is None or _follows_its_import(node, outcome):
            continue
        known = module, in_program, target
        of_name = list(private_keras.imports_of(node, name))
        if any(private_keras.stays(part, *known) for part in of_name):
            continue  # findings at the names that it is read for say so
        code, way = outcome.code, outcome.way_out
        if any(private_keras.goes(part, *known) for part in of_name):
            code, way = "KERAS_PRIVATE", _PUBLIC_WAY
        if name in in_program.unused and _is_manual(outcome):
            code, way = "UNUSED_IMPORT", UNUSED_WAY
        if isinstance(node, ast.Attribute):
            code, way = _of_method(node, name, (code, way), (module, *imported))
        if code:
            # Once its import is rewritten, a removed module is one of ours.
            shown = contrib_names.as_in_tf1(name) if code == "GONE" else name
            details = _details(node, code, module)
            yield finding_at(module, node, code, shown, way, details)
    yield from _old_file(module, in_program)


def _of_method(
    node: ast.Attribute, name: str, finding: tuple[str, str], files: Sequence[Module]
) -> tuple[str, str]:
    """Return the code and the way out of an attribute that may be a removed method.

    Args:
      node: the attribute.
      name: the dotted name that it may mean.
      finding: the code and the way out of this name.
      files: the module, then the modules of the program that it imports.

    Returns:
      Another code and way out for a removed method, an empty code if the method is the
      program's own, and otherwise `finding`.
    """
    code, way = finding
    row = removed_names().get(name)
    if row is None or not row.is_method:
        return finding
    is_own = any(node.attr in file.own_members for file in files)
    if row.is_of_others and not files[0].arrays.has_array(node):
        return ("" if is_own else "LOST_METHOD"), way
    if is_own and code == "LOST_NAME":
        return "LOST_ATTRIBUTE", way_of_attribute(node.attr, way)
    return finding


def _details(
    node: ast.expr | ast.stmt, code: str, module: Module
) -> dict[str, Any] | None:
    """Return what a rewrite does at a name, if that is not what its code says.

    In an f-string it comments a removed attribute: see `rules.dead_names`.
    """
    if code != "LOST_ATTRIBUTE":
        return None
    around = enclosing(node, ast.JoinedStr | ast.stmt, module.parents)
    return {"rewrite": COMMENTS} if isinstance(around, ast.JoinedStr) else None


def _is_manual(outcome: Resolution) -> bool:
    """Return whether a person has to replace a name, which is not there any longer."""
    return outcome.is_removed and CODES[outcome.code].verdict == "manual"


def _follows_its_import(node: ast.expr | ast.stmt, outcome: Resolution) -> bool:
    """Return whether a use of `keras` is right once its import is rewritten."""
    is_import = isinstance(node, ast.stmt) or bool(loaded_module(node))
    return outcome.code == "KERAS2_NAME" and not is_import


def _first_flag_only(
    found: Iterable[tuple[ast.expr | ast.stmt, str]],
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield all uses, but only the first one of a name below `FLAGS`."""
    has_flags = False
    for node, name in found:
        before, flags, _ = f"{name}.".partition(".FLAGS.")
        if not flags:
            yield node, name
        elif not has_flags:
            has_flags = True
            yield node, f"{before}.FLAGS"


def _old_file(module: Module, in_program: InProgram) -> Iterator[Finding]:
    """Yield the import of TensorFlow in a file that is TF1 by its program alone."""
    shows_it_itself = module.evidence.old or module.evidence.leftover
    if not in_program.targets_tf1 or shows_it_itself or not in_program.meaning.why_tf1:
        return
    if module.names.scopes.module in module.names.scopes.whole_scopes:
        return  # the import stays: each name is one of `compat.v1`
    name = f"TensorFlow 1: {in_program.meaning.why_tf1}"
    for node in module.nodes:
        whole = (i for i in imports(node) if not i.full.startswith(_PARTS))
        names = [getattr(i.node, "module", i.full) for i in whole]
        if "tensorflow" in (*names, loaded_module(node)):
            yield finding_at(module, node, "V1_FILE", name, _V1_IMPORT)
            return


def _switches(
    module: Module, in_program: InProgram, target: Target
) -> Iterator[Finding]:
    """Yield what the program of a main file needs and does not switch on itself."""
    meaning = in_program.of_main
    if in_program.starts:
        yield from _switch(module, "V1_BEHAVIOUR", meaning.lacks_switch, _V1_WAY)
    is_first = in_program.starts or in_program.loads_first
    is_first = is_first or (in_program.is_main and not in_program.is_run)
    if is_first and meaning.keras_choice is None and not target.has_estimator:
        yield from _switch(module, "KERAS2", meaning.keras2, _KERAS2_WAY)
    if is_first and meaning.estimator_install is None and not target.has_estimator:
        package = meaning.estimator_library
        yield from _switch(module, "LIBRARY_ESTIMATOR", package, _ESTIMATOR_WAY)


def _switch(
    module: Module, code: str, needs: Use | None, way: str
) -> Iterator[Finding]:
    if needs is not None:
        line = needs.line if needs.file == module.file else 1
        yield finding_at(module, None, code, str(needs), way, first=line)
