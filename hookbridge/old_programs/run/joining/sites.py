"""Where guests from outside would join a program, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hookbridge.old_programs.reading.evidence import TENSORFLOW
from hookbridge.old_programs.reading.modules import Module
from hookbridge.old_programs.scanning.guests import SESSIONS, Trainings, last_name

_PLAIN = ("Session", "InteractiveSession")
_MANAGED = ("managed_session", "prepare_or_wait_for_session")
_HOOKS = "the guests join it as hooks"
_IN_PLAIN = "its session is a plain one"


class Site(NamedTuple):
    """A training in a program's source."""

    file: str
    line: int
    call: str  # what is called
    joins: bool  # whether guests join it
    how: str  # how they join, or why they do not


def sites(modules: Sequence[Module]) -> Iterator[Site]:
    """The trainings of a program, file by file, in the order of their lines."""
    own = frozenset(part for module in modules for part in module.dotted.split("."))
    for module in modules:
        plain, trainings = _plain_runs(module), Trainings(module)
        of_module = []
        for node in module.nodes:
            if isinstance(node, ast.Call):
                site = _of_call(module, node, plain, trainings, own)
                if site is not None:
                    of_module.append(Site(module.file, node.lineno, *site))
        yield from sorted(of_module)


def _of_call(
    module: Module,
    node: ast.Call,
    plain: frozenset[int],
    trainings: Trainings,
    own: frozenset[str],
) -> tuple[str, bool, str] | None:
    """The name of the call, whether guests join, and how; None for other calls."""
    last = last_name(node.func)
    full = module.names.of(node.func) or ""
    is_method = isinstance(node.func, ast.Attribute) and not full
    words = {keyword.arg for keyword in node.keywords}
    has_input = "input_fn" in words or any(_is_input(a) for a in node.args[:1])
    if last in SESSIONS:
        return last, True, f"{_HOOKS}, after its own"
    if full.endswith("estimator.train_and_evaluate"):
        how = "; its EvalSpec gives them val_* logs, with --steps_per_epoch"
        return last, True, _HOOKS + how
    if full.startswith("tf.contrib.learn") and last in ("run", "Experiment"):
        name = "Experiment" if last == "Experiment" else "learn_runner.run"
        return name, True, f"{_HOOKS}, through `train_and_evaluate`"
    if full.endswith("learning.train"):
        return "learning.train", False, _IN_PLAIN
    if last in ("train", "fit", "evaluate") and is_method and has_input:
        return f"Estimator.{last}", True, f"{_HOOKS}, after its own"
    if last in ("fit", "fit_generator") and is_method:
        if _is_foreign(node.func, module, own):
            return None
        return f"Model.{last}", True, "the guests join it as callbacks"
    if last == "train_on_batch" or full.endswith("tf.GradientTape"):
        return last, False, "a loop of the program's own calls no callbacks"
    if last in _MANAGED:
        return last, False, "a Supervisor's session is a plain one"
    if id(node) in plain and trainings.has(node):
        return f"{_receiver(node.func)}.run", False, _IN_PLAIN
    return None


def _is_foreign(function: ast.expr, module: Module, own: frozenset[str]) -> bool:
    """Whether a method is one of an object that comes from another library."""
    assert isinstance(function, ast.Attribute)
    values: list[ast.expr] = [function.value]
    if isinstance(function.value, ast.Name):
        values = [
            node.value
            for node in module.nodes
            if isinstance(node, ast.Assign)
            and function.value.id in map(ast.unparse, node.targets)
        ]
    names = [module.names.raw(m.func) for m in values if isinstance(m, ast.Call)]
    roots = [name.partition(".")[0] for name in names if name is not None]
    return bool(roots) and not any(r in TENSORFLOW or r in own for r in roots)


def _plain_runs(module: Module) -> frozenset[int]:
    """The ids of calls of `run` that a file makes on its plain sessions."""
    names, monitored = set(), set()
    for node in module.nodes:
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        if isinstance(node, ast.With):
            pairs = [(i.context_expr, i.optional_vars) for i in node.items]
        elif isinstance(node, ast.Assign):
            pairs = [(node.value, target) for target in node.targets]
        for value, target in pairs:
            is_plain = isinstance(value, ast.Call) and (
                (module.names.of(value.func) or "").rpartition(".")[2] in _PLAIN
                or last_name(value.func) in _MANAGED
            )
            if is_plain and target is not None:
                names.add(ast.unparse(target))
            elif isinstance(value, ast.Call) and last_name(value.func) in SESSIONS:
                # Elsewhere the file may give the name to a plain session.
                name = target and ast.unparse(target)
                monitored |= {(id(n), name) for n in ast.walk(node)}
    calls = [node for node in module.nodes if isinstance(node, ast.Call)]
    runs = [(id(c), _receiver(c.func)) for c in calls if last_name(c.func) == "run"]
    return frozenset(r[0] for r in runs if r[1] in names and r not in monitored)


def _is_input(node: ast.expr) -> bool:
    """Whether an argument is the input function of an Estimator."""
    function = node.func if isinstance(node, ast.Call) else node
    return isinstance(node, ast.Lambda) or "input" in last_name(function).lower()


def _receiver(node: ast.expr) -> str:
    return ast.unparse(node.value) if isinstance(node, ast.Attribute) else ""
