"""Rewrites the text of one file."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hookbridge import errors
from hookbridge.old_programs.reading.imports import link
from hookbridge.old_programs.reading.modules import Module, why
from hookbridge.old_programs.reading.programs import Place, Programs
from hookbridge.old_programs.rewrites.registry import REWRITES, chosen
from hookbridge.old_programs.rewriting import results
from hookbridge.old_programs.rewriting.context import Context
from hookbridge.old_programs.rewriting.results import Edit, Rewritten
from hookbridge.old_programs.scanning import lacks
from hookbridge.old_programs.target import NEWEST, Target

if TYPE_CHECKING:
    from hookbridge.old_programs.rewriting.rule import RewriteRule

MAX_WALKS = 4
# The finding that the rule for imports of TensorFlow 1 settles.
V1 = "V1_FILE"


def rewrite(
    source: str,
    *,
    target: str = NEWEST,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    rules: Sequence[RewriteRule] = REWRITES,
) -> Rewritten:
    """Moves the code of one file to a newer TensorFlow.

    Nothing is executed and TensorFlow is not imported. Formatting is kept; a second
    rewrite changes nothing. The file is taken for a whole program: what other files say
    is not known here.

    Args:
      source: Python code.
      target: the version of TensorFlow that it has to run on.
      only: names of the rules to apply; empty for all.
      skip: names of rules that are left out.
      rules: the rules to choose from; they may include your own.

    Returns:
      The new text, what was done and what is left.

    Raises:
      errors.InvalidArgumentError: the code cannot be parsed, or a rule or the target
        is not known.
    """
    names, choice = Target(target), chosen(rules, only, skip)
    try:
        module = Module(source)
        place = Programs([module]).place(module)
        return rewrite_module(module, place, names, *choice, {})
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        reason = why(e) if isinstance(e, SyntaxError) else f"{type(e).__name__}: {e}"
        raise errors.InvalidArgumentError(
            f"Received code that cannot be parsed; expected Python 3: {reason}."
        ) from e


def rewrite_module(
    module: Module,
    place: Place,
    target: Target,
    rules: Sequence[RewriteRule],
    has_comments: bool,
    guests: Mapping[str, str],
) -> Rewritten:
    """The rewrite of one module; `guests` has the guest classes of other files."""
    before = module.text
    becomes_v1 = place.means_old and any(V1 in rule.codes for rule in rules)
    edits: list[Edit] = []
    codes = frozenset(code for rule in rules for code in rule.codes)
    for walk in range(MAX_WALKS + 1):
        if becomes_v1:
            _provide_v1(module)
        findings = lacks(module, place, target)
        # A change of one walk may let a rule do more in the next walk.
        is_done = walk and not any(finding.code in codes for finding in findings)
        if is_done or walk == MAX_WALKS or not rules:
            break
        context = Context(module, place, target, guests, findings, codes)
        changed = _walked(context, rules)
        edits += sorted(context.edits, key=lambda edit: edit.line)
        if changed == module.text:
            break
        module = Module(changed, module.file)
        link(module, place.own)
        place = _rewritten(place, module)
    text = results.with_comments(module, findings) if has_comments else module.text
    return Rewritten(before, text, tuple(edits), results.comments_of(text))


def _provide_v1(module: Module) -> None:
    """Lets names of TensorFlow from other files of the program be those of v1."""
    names = module.names
    for name, value in names.bound.items():
        if name not in names.of_its_own and value.partition(".")[0] == "tensorflow":
            rest = value[len("tensorflow") :]
            if not rest.startswith((".compat.", ".python", ".contrib", ".core")):
                names.bound[name] = f"tensorflow.compat.v1{rest}"


def _rewritten(place: Place, module: Module) -> Place:
    """The place of a module that has been rewritten: it may have its switches now."""
    meaning, now = place.of_main, module.evidence
    keras2 = now.keras2 or (now.keras if meaning.is_of_v1 else None)
    changed = replace(
        meaning,
        keras2=meaning.keras2 or keras2,
        switch=meaning.switch or now.switch,
        keras_choice=meaning.keras_choice or now.keras_choice,
    )
    return replace(place, of_main=changed)


def _walked(context: Context, rules: Sequence[RewriteRule]) -> str:
    """The text once each rule has seen its nodes, inner nodes first."""
    for rule in rules:
        if rule.prepare is not None:
            rule.prepare(context)
    context.keep_aliases()
    of_kind: dict[type[ast.AST], list[RewriteRule]] = {}
    for rule in rules:
        for kind in rule.nodes:
            of_kind.setdefault(kind, []).append(rule)
    # A node comes before the nodes inside it there.
    for node in context.module.nodes[::-1]:
        for rule in of_kind.get(type(node), ()):
            rule.apply(node, context)
    return context.result()
