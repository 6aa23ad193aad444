"""What the source of one file says about the TensorFlow that it was written for."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hookbridge.old_programs.reading.names.bound_names import Names
from hookbridge.old_programs.reading.names.import_statements import (
    STATEMENTS,
    as_v1,
    canonical,
    imports,
    loaded_module,
)
from hookbridge.old_programs.reading.names.named_uses import uses
from hookbridge.old_programs.reading.one_file import (
    keras2_signs,
    keras_signs,
    old_callbacks,
)
from hookbridge.old_programs.reading.one_file.keras_signs import Sign
from hookbridge.tf1_names import contrib_names
from hookbridge.tf1_names.private_names import FILES
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.syntax import is_below, last_name
from hookbridge.tf1_names.target import NEWEST, Target, table

# Packages that bring TensorFlow with them or are a part of it.
TENSORFLOW = frozenset(
    ("tensorflow", "tensorflow_estimator", "keras", "tf_keras", "tf_slim", "horovod")
)
# tf_upgrade_v2 leaves these names in upgraded programs. So they mean TensorFlow 1 only
# if the file has no `new` name.
_LEFTOVERS = ("tf.layers", "tf.summary", "tf.contrib", "tf.estimator")
# Methods of the datasets of version 1.
_OLD_METHODS = frozenset({"make_one_shot_iterator", "make_initializable_iterator"})
# What the author of a file that means TensorFlow 2 writes; rewrites write it, too.
_FOR_TF2 = ("tf.compat.v1", "hookbridge.estimator", "hookbridge.contrib")
# Names of both versions that the list of `tf.compat.v1` does not have, or not all.
_IN_BOTH = ("tf.compat", "tf.keras", "tf.estimator", *FILES)
EAGER_ALONE = ".disable_eager_execution"
_SWITCHES = (".disable_v2_behavior", EAGER_ALONE)
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


def _names(key: str, prefixes: Sequence[str] = ("tf.", "tf.compat.v1.")) -> set[str]:
    """Return the names of a list, in each of the places that have them."""
    names: list[str] = table("names")[key]
    return {f"{prefix}{name}" for prefix in prefixes for name in names}


def _also_in_contrib(names: set[str]) -> set[str]:
    """Return the names, and their names in `tf.contrib` if these mean the same."""
    sources = contrib_names.NAMES.items()
    same = {path for path, source in sources if source.dotted in names}
    return names | {f"tf.contrib.{path}" for path in same}


# Kind of evidence -> how its names begin.
_PARTS: dict[str, tuple[str, ...]] = {
    "estimator": (
        "tf.estimator",
        "tf.compat.v1.estimator",
        "tensorflow_estimator",
        "tensorflow.python.estimator",
        "hookbridge.estimator",
    ),
    "estimator_install": ("hookbridge.estimator.install",),
    "shared_session": ("hookbridge.legacy.share_keras_session",),
    "keras": ("tf.keras", "tf.compat.v1.keras", "keras", "tf_keras"),
    "keras_package": ("keras.",),
    "keras3": tuple(
        f"{keras}.{module}"
        for keras in ("keras", "tf.keras")
        for module in ("distribution", "ops", "random", "tree")
    ),
    "keras2": (
        *_names("needs Keras 2"),
        *_names("needs Keras 2 as they are", [""]),
        *_names("needs Keras 2 in contrib", ["tf.contrib.", "hookbridge.contrib."]),
    ),
    "slim": tuple(_names("is tf_slim in contrib", ["tf.contrib."])),
}
# Calls that need the v1 behaviour of TensorFlow: `_ANYWHERE` in all code,
# `_AT_MODULE_LEVEL` only outside of functions (an Estimator calls its functions inside
# a graph).
_ANYWHERE = _also_in_contrib(_names("needs v1"))
_AT_MODULE_LEVEL = _also_in_contrib(_names("needs v1 at module level"))
# Their threads read variables, and in these threads no graph is the default one.
_WITH_THREADS = _names("trains in threads", [""])
# What starts threads of the program itself.
_THREADS = frozenset(table("names")["starts threads"])
# Modules of packages that read `tf.estimator` when they are imported.
_WITH_ESTIMATOR = frozenset(table("names")["packages that need tf.estimator"])


class Use(NamedTuple):
    """A name in a file and where it stands."""

    name: str
    file: str
    line: int  # 0 if nobody knows it
    place: str = ""  # how a user finds the line, if it is one of a notebook

    def __str__(self) -> str:
        where = self.place or (f":{self.line}" if self.line else "")
        return f"{self.name} in {os.path.basename(self.file)}{where}"


@dataclass(frozen=True)
class Evidence:
    """The first use of each kind in a file, or in a program; None if there is none."""

    # A name, under `import tensorflow as tf`, that only TensorFlow 1 had.
    old: Use | None = None
    # A line of a notebook that asks for TensorFlow 1: `%tensorflow_version 1.x`.
    pin: Use | None = None
    # A name that only TensorFlow 1 had and that upgraded programs may have.
    leftover: Use | None = None
    # A name that only code for TensorFlow 2 uses; `tf.compat.v1.X` and `hb.contrib.X`
    # count.
    new: Use | None = None
    # An import of TensorFlow, or of a package that brings it.
    tensorflow: Use | None = None
    needs_v1: Use | None = None  # what needs the v1 behaviour of TensorFlow
    switch: Use | None = None  # the program's own call that switches v2 behaviour off
    estimator: Use | None = None  # a name of Estimator
    estimator_library: Use | None = None  # a package whose import needs `tf.estimator`
    estimator_install: Use | None = None  # the call that puts `tf.estimator` back
    shared_session: Use | None = None  # the call that gives all threads one session
    keras: Use | None = None  # any name of Keras
    keras2: Use | None = None  # what Keras 3 does not have
    keras2_method: Use | None = None  # what models of Keras 3 do not have or take
    keras3: Use | None = None  # a name that only Keras 3 has
    keras_argument: Use | None = None  # an argument that has another name today
    keras_package: Use | None = None  # a name of `keras`, not of `tf.keras`
    threads: Use | None = None  # what starts threads of the program itself
    slim: Use | None = None  # a name of tf.contrib that tf_slim has
    keras_choice: Use | None = None  # the program's own choice of its Keras
    # What a callback reads of its `params` that TensorFlow has told until 2.1.
    callback_params: Use | None = None
    # The canonical names that it assigns to.
    assigned: frozenset[str] = frozenset()

    def assigns(self, name: str) -> bool:
        """Return whether the program itself gives a canonical name its value."""
        return any(is_below(name, assigned) for assigned in self.assigned)


def examine(
    file: str, nodes: Sequence[ast.AST], names: Names, guarded: Collection[int]
) -> Evidence:
    """Return the evidence of one file."""
    first_uses: dict[str, Use] = {}
    assigned = _assigned_names(names)
    signs = _signs(nodes, names, guarded, Evidence(assigned=assigned))
    for kind, name, line in sorted(signs, key=lambda sign: sign[2]):
        first_uses.setdefault(kind, Use(name, file, line))
    if (key := keras_signs.key_of_old_logs(first_uses)) is not None:
        first_uses.setdefault("leftover", key)
    return Evidence(**first_uses, assigned=assigned)


def _assigned_names(names: Names) -> frozenset[str]:
    """Return the canonical names that a file, or another of its program, assigns to.

    A rewrite of the file may make `tf.compat.v1.X` of `tf.X`. The other way round, a
    program that assigns to `tf.compat.v1.X` has no `tf.X` yet.
    """
    assigned = {*map(canonical, names.assigned | names.assigned_by_others)}
    return frozenset({*assigned, *map(as_v1, assigned)})


def _signs(
    nodes: Sequence[ast.AST],
    names: Names,
    guarded: Collection[int],
    file_evidence: Evidence,
) -> Iterator[Sign]:
    """Yield all that the file shows."""
    target = Target(NEWEST)
    for node, name in uses(nodes, names):
        is_left = id(node) in guarded or file_evidence.assigns(name)
        outcome = None if is_left else resolve(name, target)
        if outcome is None:
            continue
        yield from keras_signs.of_name(name, node.lineno)
        is_v1 = outcome.code == "V1_NAME" and name.startswith("tf.")
        is_v1 |= name.startswith("tf.estimator") and is_below(
            outcome.replacement, "hookbridge.estimator.v1"
        )
        if is_v1 or name.startswith("tf.contrib"):
            leftover = name.startswith(_LEFTOVERS)
            yield "leftover" if leftover else "old", name, node.lineno
    yield from _needing_v1(nodes, names)
    for node, name in old_callbacks.reads(nodes):
        if name != f"self.{old_callbacks.DATA}":
            yield "callback_params", name, node.lineno
            yield "keras2", name, node.lineno
    yield from _examine_nodes(nodes, names, target)
    yield from keras2_signs.of_files(nodes)


def _examine_nodes(
    nodes: Sequence[ast.AST], names: Names, target: Target
) -> Iterator[Sign]:
    """Yield what imports, names, calls and constants show, one node at a time."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield from _examine_attribute(node, names, target)
        elif isinstance(node, ast.Call):
            yield from _examine_call(node, names, target)
        elif isinstance(node, ast.Subscript):
            yield from keras_signs.of_logs(node)
        elif isinstance(node, ast.Constant):
            if node.value == LEGACY_KERAS:
                yield "keras_choice", LEGACY_KERAS, node.lineno
        elif isinstance(node, ast.Name) and node.id in names.given:
            if (name := names.canonical(node)) is not None:
                yield from _examine_name(name, node.lineno, target)
        elif type(node) in STATEMENTS:
            for imported in imports(node):
                yield from _examine_import(imported.full, imported.node.lineno, target)


def _examine_call(node: ast.Call, names: Names, target: Target) -> Iterator[Sign]:
    """Yield what a call shows: by the arguments of Keras, or by what it imports."""
    function = names.canonical(node.func) or ""
    yield from keras_signs.of_call(node, function)
    yield from keras2_signs.of_call(node, function)
    yield from _examine_import(loaded_module(node), node.lineno, target)


def _examine_import(full: str, line: int, target: Target) -> Iterator[Sign]:
    """Yield what the import of a name shows."""
    if full in _THREADS:
        yield "threads", full, line
    if any(is_below(full, module) for module in _WITH_ESTIMATOR):
        yield "estimator_library", full, line
    if full.partition(".")[0] in TENSORFLOW:
        yield "tensorflow", full, line
        yield from _examine_name(canonical(full), line, target)


def _examine_attribute(
    node: ast.Attribute, names: Names, target: Target
) -> Iterator[Sign]:
    """Yield what a dotted name shows, or a method of whatever it is called on."""
    full = names.canonical(node)
    yield from keras2_signs.of_attribute(node)
    if full is not None:
        yield from _examine_name(full, node.lineno, target)
    elif node.attr in _OLD_METHODS:
        # The datasets of `tensorflow.compat.v1` have these methods anyway.
        has_v1 = "tf.compat.v1" in map(canonical, names.bound.values())
        yield "leftover" if has_v1 else "old", f".{node.attr}()", node.lineno
    elif node.attr == "value" and _is_dimension(node.value):
        yield "needs_v1", "shape[...].value", node.lineno


def _examine_name(name: str, line: int, target: Target) -> Iterator[Sign]:
    """Yield what a name of TensorFlow, or of a package with it, shows by itself."""
    for kind, beginnings in _PARTS.items():
        if name.startswith(beginnings):
            yield kind, name, line
    if name.endswith(_SWITCHES):
        yield "switch", name, line
    if name in _THREADS:
        yield "threads", name, line
    if name.startswith(_FOR_TF2) or (
        name.startswith("tf.")
        and not name.startswith(_IN_BOTH)
        and target.has(name)
        and not target.has_v1(name)
    ):
        yield "new", name, line


def _needing_v1(nodes: Sequence[ast.AST], names: Names) -> Iterator[Sign]:
    """Yield the calls that need the v1 behaviour of TensorFlow."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    named_calls = [(call, names.canonical(call.func) or "") for call in calls]
    all_names = {name for _, name in named_calls}
    needing = _WITH_THREADS
    # A program that makes its graph itself has v1 behaviour inside of it.
    if all_names.isdisjoint({"tf.Graph", "tf.compat.v1.Graph"}):
        needing = _WITH_THREADS | _ANYWHERE | _AT_MODULE_LEVEL
        for session in _sessions_of_tests(nodes):
            yield "needs_v1", "self.test_session()", session.lineno
    inside = _in_functions(nodes) if all_names & _AT_MODULE_LEVEL else set()
    for call, name in named_calls:
        if name in needing and not (name in _AT_MODULE_LEVEL and id(call) in inside):
            yield "needs_v1", name, call.lineno


def _sessions_of_tests(nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yield the `self.test_session()` of a `with`, which eager mode has no session for.

    `session` and `cached_session` give one that runs eager tensors.
    """
    blocks = (node for node in nodes if isinstance(node, ast.With))
    for block in blocks:
        for item in block.items:
            call = item.context_expr
            name = last_name(call.func) if isinstance(call, ast.Call) else ""
            if name == "test_session" and item.optional_vars is not None:
                yield call


def is_test_case(node: ast.AST) -> bool:
    """Return whether a class has tests, by its base classes."""
    bases = node.bases if isinstance(node, ast.ClassDef) else ()
    return any(last_name(base).endswith("TestCase") for base in bases)


def _in_functions(nodes: Sequence[ast.AST]) -> set[int]:
    """Return the ids of the nodes in functions other than tests and a `main`.

    Tests run outside of an Estimator's graph.
    """
    cases = filter(is_test_case, nodes)
    tests = {id(part) for case in cases for part in ast.walk(case)}
    is_program = any(getattr(node, "value", "") == "__main__" for node in nodes)
    return {
        id(inner)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and id(node) not in tests
        and not (is_program and getattr(node, "name", "") == "main")
        for inner in ast.walk(node)
    }


def _is_dimension(node: ast.expr) -> bool:
    """Return whether it is `x.shape[i]` or `x.get_shape()[i]`: a `Dimension` in TF1."""
    if not isinstance(node, ast.Subscript):
        return False
    shape = node.value
    if isinstance(shape, ast.Call):
        return isinstance(shape.func, ast.Attribute) and shape.func.attr == "get_shape"
    return isinstance(shape, ast.Attribute) and shape.attr == "shape"
