"""Scans files for hooks, callbacks, Estimators and names that the target lacks."""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterable, Iterator

from hookbridge.old_programs.names.lost_in_libraries import lost_methods
from hookbridge.old_programs.names.old_values import old_values
from hookbridge.old_programs.names.outcome import Resolution
from hookbridge.old_programs.names.renamed_arguments import (
    METHODS,
    becomes_prefetch,
    is_second,
    name_today,
    surplus,
)
from hookbridge.old_programs.names.resolution import is_of_no_version, resolve
from hookbridge.old_programs.names.target import NEWEST, Target, table
from hookbridge.old_programs.reading.evidence import Use
from hookbridge.old_programs.reading.import_statements import as_v1, imports, loaded
from hookbridge.old_programs.reading.modules import Module
from hookbridge.old_programs.reading.named_uses import uses
from hookbridge.old_programs.reading.programs import Place, read_programs
from hookbridge.old_programs.reading.python2 import FROM_PYTHON_2
from hookbridge.old_programs.scanning import guests, tpu_names
from hookbridge.old_programs.scanning.findings import (
    CODES,
    Finding,
    Report,
    finding_at,
    sort_key,
)
from hookbridge.old_programs.scanning.python2_uses import python2_uses

# Function -> the code of a finding at its call, and the way out.
_CALLS: dict[str, tuple[str, str]] = {
    name: (code, row["way out"])
    for code, row in table("names")["calls"].items()
    for name in row["names"]
}
_READERS = frozenset(table("names")["queue readers"])
_READER_WAY = '`tf.device("/cpu:0")` around readers and their queues'
_KERAS2_WAY = "`TF_USE_LEGACY_KERAS=1` before TensorFlow is imported"
_V1_IMPORT = "`import tensorflow.compat.v1 as tf`"
_PIN_WAY = "a comment"
UNUSED_WAY = "the program without this import"
_V1_WAY = "`tf.compat.v1.disable_v2_behavior()` first thing in the program"


def scan(paths: Iterable[str | os.PathLike[str]], *, target: str = NEWEST) -> Report:
    """Finds the places that matter for the move of a program to a newer TensorFlow.

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
        findings += findings_of(module, programs.place(module), names_of_target)
        findings += guests.sites(module)
    findings += guests.classes(guests.Guests(programs.modules), programs.given)
    ordered = tuple(sorted(findings, key=sort_key))
    return Report(target, len(programs.given), ordered, tuple(unread))


def findings_of(module: Module, place: Place, target: Target) -> list[Finding]:
    """What the target lacks of one module, by line."""
    findings = [*_names(module, place, target), *_switches(module, place, target)]
    for line, text in module.notebook.old_pins if module.notebook is not None else ():
        findings += [finding_at(module, None, "OLD_PIN", text, _PIN_WAY, first=line)]
    for node in module.nodes:
        if isinstance(node, ast.With):
            findings += _readers_on_gpu(module, node)
        elif isinstance(node, ast.Call):
            findings += _scan_call(module, place, node)
            findings += _summaries_nowhere(module, node, target)
        elif isinstance(node, ast.Compare):
            findings += _exact_tensors(module, node)
    for use, name in python2_uses(module):
        findings.append(finding_at(module, use, "PYTHON_2", name, FROM_PYTHON_2))
    return sorted(findings, key=lambda f: (f.cell, f.line, f.column))


def _names(module: Module, place: Place, target: Target) -> Iterator[Finding]:
    """Every use of a TensorFlow name that the target lacks.

    What the program writes itself, and what it does without, is not reported.
    """
    own = tuple(f"{name}." for name in place.meaning.written)
    for node, name in _with_flags_once(uses(module.nodes, module.names)):
        if id(node) in module.guarded or f"{name}.".startswith(own):
            continue
        if lost_methods(method := getattr(node, "attr", "")) and any(
            method in other.own_members for other in place.own.values()
        ):
            continue
        outcome = _outcome(name, target, targets_tf1=place.targets_tf1)
        if outcome is None:
            continue
        code, way = outcome.code, outcome.way_out
        if (
            name in place.unused
            and not outcome.living
            and CODES[code].verdict == "manual"
        ):
            code, way = "UNUSED_IMPORT", UNUSED_WAY
        yield finding_at(module, node, code, name, way)
    yield from _old_file(module, place)


def _with_flags_once(
    found: Iterable[tuple[ast.expr | ast.stmt, str]],
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Uses with one of the flags, however many of them the file reads."""
    has_flags = False
    for node, name in found:
        before, flags, _ = f"{name}.".partition(".FLAGS.")
        if not flags:
            yield node, name
        elif not has_flags:
            has_flags = True
            yield node, f"{before}.FLAGS"


def _outcome(name: str, target: Target, *, targets_tf1: bool) -> Resolution | None:
    """What becomes of a name in a file, which may be one of TensorFlow 1."""
    outcome = resolve(name, target)
    if outcome is None:
        return None
    if targets_tf1 and outcome.code == "ESTIMATOR":
        outcome = resolve(as_v1(name), target) or outcome
    # A rewrite makes these names of those of TensorFlow 1.
    of_v1 = targets_tf1 or name.startswith(("tf.compat.v1.", "hookbridge.estimator."))
    if of_v1 and outcome.code == "MISSING" and is_of_no_version(name):
        return Resolution("NOT_IN_1_15")
    return outcome


def _old_file(module: Module, place: Place) -> Iterator[Finding]:
    """The import of TensorFlow in a file that is TF1 code only as its program is."""
    shows_it_itself = module.evidence.old or module.evidence.leftover
    if not place.targets_tf1 or shows_it_itself or not place.meaning.old:
        return
    name = f"TensorFlow 1: {place.meaning.old}"
    for node in module.nodes:
        names = [getattr(one.node, "module", one.full) for one in imports(node)]
        if "tensorflow" in (*names, loaded(node)):
            yield finding_at(module, node, "V1_FILE", name, _V1_IMPORT)
            return


def _switches(module: Module, place: Place, target: Target) -> Iterator[Finding]:
    """What the program of a main file needs and does not switch on itself."""
    meaning = place.of_main
    if place.is_run:
        yield from _switch(module, "V1_BEHAVIOUR", meaning.lacks_switch, _V1_WAY)
    if place.is_main and meaning.keras_choice is None and not target.has_estimator:
        yield from _switch(module, "KERAS2", meaning.keras2, _KERAS2_WAY)


def _switch(
    module: Module, code: str, needs: Use | None, way: str
) -> Iterator[Finding]:
    if needs is not None:
        line = needs.line if needs.file == module.file else 1
        yield finding_at(module, None, code, str(needs), way, first=line)


def _readers_on_gpu(module: Module, block: ast.With) -> Iterator[Finding]:
    """Queue readers in a block for a GPU; not those of functions that it calls."""
    for item in block.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or not call.args:
            continue
        if not (module.names.canonical(call.func) or "").endswith(".device"):
            continue
        if "gpu:" not in ast.unparse(call.args[0]).lower():
            continue
        for node in ast.walk(block):
            name = (
                module.names.canonical(node.func)
                if isinstance(node, ast.Call)
                else None
            )
            if name in _READERS:
                yield finding_at(module, node, "GPU_READER", str(name), _READER_WAY)


def _scan_call(module: Module, place: Place, call: ast.Call) -> Iterator[Finding]:
    """What runs differently, or under another name, on the target."""
    name = module.names.canonical(call.func) or ""
    if name == "tf.device" and call.args and _may_be_function(call.args[0]):
        # A rewrite leaves `import tensorflow`, which parts of TensorFlow need.
        if not place.targets_tf1 or "tensorflow" in module.names.bound:
            way = "`tf.compat.v1.device(...)`"
            yield finding_at(module, call, "DEVICE_FUNCTION", name, way)
    elif name in _CALLS:
        code, way = _CALLS[name]
        yield finding_at(module, call, code, name, way)
    yield from _scan_arguments(module, call, name)


def _scan_arguments(module: Module, call: ast.Call, name: str) -> Iterator[Finding]:
    """Arguments, and a method, that have another name or another value today."""
    for _, way in itertools.islice(tpu_names.unnamed(module, call), 1):
        what = 'TPUClusterResolver("")'
        yield finding_at(module, call, "OLD_ARGUMENT", what, f"`{way}`")
    method = getattr(call.func, "attr", "")
    for node, today in itertools.islice(old_values(call, name), 1):
        way = f"`{today.format(ast.unparse(node))}`"
        yield finding_at(module, call, "OLD_ARGUMENT", name or method, way)
    if method in METHODS:
        yield finding_at(module, call, "OLD_ARGUMENT", method, f"`{METHODS[method]}`")
    for _ in surplus(call)[:1]:
        way = "the call without its last argument"
        yield finding_at(module, call, "OLD_ARGUMENT", method, way)
    for keyword in call.keywords:
        yield from _scan_argument(module, call, keyword, name)


def _scan_argument(
    module: Module, call: ast.Call, keyword: ast.keyword, function: str
) -> Iterator[Finding]:
    """An argument that has another name on the target, or none."""
    today = name_today(call, keyword, function)
    if today is None:
        return
    way = f"`{today}=`" if today else "the call without this argument"
    if becomes_prefetch(keyword):
        way = "`.prefetch(...)` after the `map`"
    elif is_second(call, keyword, function):
        way = "the argument without its name"
    name = getattr(call.func, "attr", "") or function
    yield finding_at(module, call, "OLD_ARGUMENT", f"{name}({keyword.arg}=)", way)


def _summaries_nowhere(
    module: Module, call: ast.Call, target: Target
) -> Iterator[Finding]:
    """A `SummarySaverHook` that has no place, where the target asks for one."""
    name = module.names.canonical(call.func) or ""
    if not target.needs_summary_place or not name.endswith(".SummarySaverHook"):
        return
    given = {keyword.arg for keyword in call.keywords}
    # The third and fourth argument; `**options` may have them.
    if len(call.args) < 3 and not given & {"output_dir", "summary_writer", None}:
        way = "`output_dir=`, or leave the hook out"
        yield finding_at(module, call, "SUMMARY_NOWHERE", name, way)


def _exact_tensors(module: Module, test: ast.Compare) -> Iterator[Finding]:
    """A comparison of a type with `tf.Tensor`, which is a base class today."""
    if ast.unparse(test.left).startswith("type("):
        for part in ast.walk(test):
            name = module.names.canonical(part) or ""
            if name in ("tf.Tensor", "tf.compat.v1.Tensor"):
                way = "`isinstance(..., tf.Tensor)`"
                yield finding_at(module, test, "TENSOR_TYPE", f"type() of {name}", way)


def _may_be_function(node: ast.expr) -> bool:
    """Whether the argument of `tf.device` may be a function and not a name."""
    function = node.func if isinstance(node, ast.Call) else node
    ends = ("setter", "_fn", "chooser")
    return isinstance(node, ast.Lambda) or guests.last_name(function).endswith(ends)
