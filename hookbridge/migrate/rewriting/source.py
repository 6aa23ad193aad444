"""Rewrites the text of one file."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import libcst as cst
from libcst.metadata import MetadataWrapper

from hookbridge import errors
from hookbridge.migrate import behaviour_findings, name_findings
from hookbridge.migrate.findings import Finding
from hookbridge.migrate.names import Names
from hookbridge.migrate.rewrites.registry import REWRITES, chosen
from hookbridge.migrate.rewriting import todos
from hookbridge.migrate.rewriting.context import Context, Options
from hookbridge.migrate.rewriting.engine import Walk
from hookbridge.migrate.rewriting.results import Edit, Rewritten
from hookbridge.migrate.rules import found_at
from hookbridge.migrate.sources import parsed, why
from hookbridge.migrate.target import NEWEST, Target

MAX_WALKS = 4

if TYPE_CHECKING:
    from hookbridge.migrate.rewriting.rule import RewriteRule


def rewrite(
    source: str,
    *,
    target: str = NEWEST,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    native: bool = False,
    add_guests: bool = False,
    guests: Mapping[str, str] | None = None,
    shared: Collection[str] = (),
    rules: Sequence[RewriteRule] = REWRITES,
) -> Rewritten:
    """Moves the code of one file to a newer TensorFlow.

    Nothing is executed and TensorFlow is not imported. Formatting is kept; a second
    rewrite changes nothing.

    Args:
      source: Python code.
      target: the version of TensorFlow that it has to run on.
      only: names of the rules to apply; empty for all.
      skip: names of rules that are left out.
      native: hooks become Keras callbacks where that is certain.
      add_guests: trainings with hooks show how a Keras callback joins them.
      guests: `{dotted name of a class: "hook", "listener" or "callback"}` for classes
        of other files that this one imports.
      shared: names that other files use: hook classes among them stay hooks.
      rules: the rules to choose from; they may include your own.

    Returns:
      The new text, what was done and what is left.

    Raises:
      errors.InvalidArgumentError: the code cannot be parsed, or a rule or the target
        is not known.
    """
    kept, comments = chosen(rules, only, skip)
    options = Options(target, native, add_guests, guests or {}, shared)
    edits: list[Edit] = []
    left_hooks: dict[str, str] = {}
    text = source
    try:
        parsed("", 0, source)
        # A change of one walk may let a rule do more in the next walk.
        for _ in range(MAX_WALKS):
            active = [r for r in kept if r.concerns(text) and options.has(r.option)]
            before = text
            text, context = _walked(text, active, options)
            if context is not None:
                edits += sorted(context.edits, key=lambda edit: edit.line)
                left_hooks = context.left_hooks
            if text == before:
                break
        if comments:
            found = [*scanned(text, target), *_left(text, left_hooks)]
            text = todos.add(text, found)
    except (SyntaxError, cst.ParserSyntaxError, ValueError, RecursionError) as e:
        reason = why(e) if isinstance(e, SyntaxError) else f"{type(e).__name__}: {e}"
        raise errors.InvalidArgumentError(
            f"Received code that cannot be parsed; expected Python 3: {reason}."
        ) from e
    return Rewritten(source, text, tuple(edits), todos.found(text))


def _walked(
    source: str, rules: Sequence[RewriteRule], options: Options
) -> tuple[str, Context | None]:
    if not rules:
        return source, None
    # libcst copies a tree because a node might be in it twice. The parser makes no such
    # trees, so the copy is skipped.
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    codes = frozenset(code for rule in rules for code in rule.codes)
    findings = scanned(source, options.target)
    context = Context(wrapper, source, options, findings, codes)
    for rule in rules:
        if rule.prepare is not None:
            rule.prepare(context)
    context.keep_aliases()
    return wrapper.visit(Walk(rules, context)).code, context


def _left(text: str, hooks: Mapping[str, str]) -> list[Finding]:
    """A finding for each class that stays a hook, with its reason."""
    source = parsed("", 0, text)
    return [
        found_at(source, node, "NATIVE_CLASS", node.name, hooks[node.name])
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and node.name in hooks
    ]


def scanned(text: str, target: str) -> list[Finding]:
    """What a scan finds in the names and calls of a text.

    Raises:
      SyntaxError: it cannot be parsed.
    """
    source = parsed("", 0, text)
    names = Names(source)
    found = list(name_findings.find(source, names, Target(target)))
    found += behaviour_findings.find(source, names)
    return sorted(found, key=lambda f: (f.line, f.column))
