"""Calls and comparisons that a newer TensorFlow takes in another way."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.scanning import tpu_names
from hookbridge.old_programs.scanning.findings import Finding, finding_at
from hookbridge.tf1_names import keras_arguments
from hookbridge.tf1_names.changes import BECOMES_PREFETCH, renamed_method
from hookbridge.tf1_names.old_values import OF_ARRAYS, old_values
from hookbridge.tf1_names.renamed_arguments import (
    change_of,
    needs_no_name,
    surplus,
)
from hookbridge.tf1_names.syntax import called_method, keywords, last_name
from hookbridge.tf1_names.target import Target, table

# Function -> the code of a finding at its call, and the way out.
_CALLS: dict[str, tuple[str, str]] = {
    name: (code, row["way out"])
    for code, row in table("names")["calls"].items()
    for name in row["names"]
}


def of_call(
    module: Module, in_program: InProgram, call: ast.Call, target: Target
) -> Iterator[Finding]:
    """Yield what runs differently, or under another name, on the target."""
    name = module.names.canonical(call.func) or ""
    if name == "tf.device" and call.args and _may_be_function(call.args[0]):
        # A rewrite leaves `import tensorflow`, which parts of TensorFlow need.
        if not in_program.targets_tf1 or "tensorflow" in module.names.bound:
            way = "`tf.compat.v1.device(...)`"
            yield finding_at(module, call, "DEVICE_FUNCTION", name, way)
    elif name in _CALLS:
        code, way = _CALLS[name]
        yield finding_at(module, call, code, name, way)
    yield from _of_arguments(module, call, name)
    if makes_untyped_array(call, name) and module.rows.may_differ(
        call.args[0], in_program.rows
    ):
        is_shown = isinstance(call.args[0], ast.List | ast.Tuple)
        function = f"`hb.legacy.{name.rpartition('.')[2]}`"
        way = "`dtype=object`" if is_shown else function
        yield finding_at(module, call, "UNEQUAL_ROWS", name, way)
    if target.needs_summary_place and name.endswith(".SummarySaverHook"):
        yield from _summaries_nowhere(module, call, name)


def makes_untyped_array(call: ast.Call, function: str) -> bool:
    """Return whether a call makes an array of its one argument, and names no type."""
    has_type = bool(keywords(call).keys() & {"dtype", ""})
    return function in OF_ARRAYS and len(call.args) == 1 and not has_type


def _of_arguments(module: Module, call: ast.Call, name: str) -> Iterator[Finding]:
    """Yield arguments, and a method, that have another name or another value today."""
    for _, way in itertools.islice(tpu_names.unnamed_devices(module, call), 1):
        title = 'TPUClusterResolver("")'
        yield finding_at(module, call, "OLD_ARGUMENT", title, f"`{way}`")
    method = called_method(call)
    for change in keras_arguments.sample_counts(call):
        title = f"{method}({change.old}=)"
        way = f"`{change.new}=` samples / batch size"
        yield finding_at(module, call, "KERAS1_COUNT", title, way)
    for node, current in itertools.islice(old_values(call, name), 1):
        written = current.format(ast.unparse(node))
        named = [f"{item.arg}=" for item in call.keywords if item.value is node]
        way = f"`{''.join(named)}{written}`"
        yield finding_at(module, call, "OLD_ARGUMENT", name or method, way)
    if current := renamed_method(method):
        yield finding_at(module, call, "OLD_ARGUMENT", method, f"`{current}`")
    if surplus(call):
        way = "the call without its last argument"
        yield finding_at(module, call, "OLD_ARGUMENT", method, way)
    for keyword in call.keywords:
        yield from _of_argument(module, call, keyword, name)


def _of_argument(
    module: Module, call: ast.Call, keyword: ast.keyword, function: str
) -> Iterator[Finding]:
    """Yield an argument that has another name on the target, or none."""
    change = change_of(call, keyword, function)
    if change is None:
        return
    way = f"`{change.new}=`" if change.new else "the call without this argument"
    if change.note == BECOMES_PREFETCH:
        way = "`.prefetch(...)` after the `map`"
    elif needs_no_name(call, keyword, change):
        way = "the argument without its name"
    name = called_method(call) or function
    yield finding_at(module, call, "OLD_ARGUMENT", f"{name}({keyword.arg}=)", way)


def _summaries_nowhere(module: Module, call: ast.Call, name: str) -> Iterator[Finding]:
    """Yield a `SummarySaverHook` that has no place, where the target asks for one."""
    # The third and fourth argument; `**options` may have them.
    has_place = keywords(call).keys() & {"output_dir", "summary_writer", ""}
    if len(call.args) < 3 and not has_place:
        way = "`output_dir=`, or leave the hook out"
        yield finding_at(module, call, "SUMMARY_NOWHERE", name, way)


def exact_tensors(module: Module, test: ast.Compare) -> Iterator[Finding]:
    """Yield a comparison of a type with `tf.Tensor`, which is a base class today."""
    if ast.unparse(test.left).startswith("type("):
        for part in ast.walk(test):
            name = module.names.canonical(part) or ""
            if name in ("tf.Tensor", "tf.compat.v1.Tensor"):
                way = "`isinstance(..., tf.Tensor)`"
                yield finding_at(module, test, "TENSOR_TYPE", f"type() of {name}", way)


def _may_be_function(node: ast.expr) -> bool:
    """Return whether the argument of `tf.device` may be a function and not a name."""
    function = node.func if isinstance(node, ast.Call) else node
    ends = ("setter", "_fn", "chooser")
    return isinstance(node, ast.Lambda) or last_name(function).endswith(ends)
