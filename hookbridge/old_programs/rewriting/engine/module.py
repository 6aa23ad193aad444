"""Rewrites one module by rules, in a few walks: each looks for what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hookbridge.ground.groups import grouped
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.imported_files import link
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.rewriting.engine import results
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.results import Edit, Rewritten
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.old_programs.scanning.findings import Finding
from hookbridge.old_programs.scanning.scan import findings_of
from hookbridge.tf1_names.target import Target

MAX_WALKS = 4


def rewrite_module(
    module: Module,
    in_program: InProgram,
    target: Target,
    rules: Sequence[RewriteRule],
    adds_comments: bool,
    guests: Mapping[str, str],
) -> Rewritten:
    """Return the rewrite of one module.

    Args:
      module: the module as it is written.
      in_program: what its program says of it.
      target: the TensorFlow that it has to run on.
      rules: the rules, in the order in which they are tried.
      adds_comments: whether what needs a person gets a comment.
      guests: the guest classes of other files, and the kind of each.
    """
    before = module.text
    edits: list[Edit] = []
    codes = frozenset(code for rule in rules for code in rule.codes)
    findings = _scan_prepared(module, in_program, target, rules)
    for _ in range(MAX_WALKS if rules else 0):
        context = Context(module, in_program, target, guests, findings, codes)
        changed = _apply_rules(context, rules)
        edits += sorted(context.edits, key=lambda edit: edit.line)
        if changed == module.text:
            break
        assigned = module.names.assigned_by_others
        module = Module(changed, module.file)
        module.names.assigned_by_others = assigned
        link(module, in_program.own_modules)
        in_program = _in_program_after(in_program, module)
        findings = _scan_prepared(module, in_program, target, rules)
        # A change of one walk may let a rule do more in the next walk.
        has_found = any(finding.code in codes for finding in findings)
        if not (has_found or context.is_unfinished):
            break
    text = results.with_comments(module, findings) if adds_comments else module.text
    return Rewritten(before, text, tuple(edits), results.comments_of(text))


def _scan_prepared(
    module: Module, in_program: InProgram, target: Target, rules: Sequence[RewriteRule]
) -> list[Finding]:
    """Return what the target lacks of a module that rules have prepared."""
    for rule in rules:
        if rule.before_scan is not None:
            rule.before_scan(module, in_program)
    return findings_of(module, in_program, target)


def _in_program_after(in_program: InProgram, module: Module) -> InProgram:
    """Return what its program says of a rewritten module, which may have switches."""
    meaning, now = in_program.of_main, module.evidence
    keras2 = now.keras2 or (now.keras if meaning.is_of_v1 else None)
    changed = replace(
        meaning,
        keras2=meaning.keras2 or keras2,
        switch=now.switch or meaning.switch,
        keras_choice=meaning.keras_choice or now.keras_choice,
        estimator_install=meaning.estimator_install or now.estimator_install,
    )
    return replace(in_program, of_main=changed)


def _apply_rules(context: Context, rules: Sequence[RewriteRule]) -> str:
    """Return the text once each rule has seen its nodes, inner nodes first."""
    for rule in rules:
        if rule.prepare is not None:
            rule.prepare(context)
    context.keep_aliases()
    of_kind = grouped((kind, rule) for rule in rules for kind in rule.nodes)
    # A node comes before the nodes inside it there.
    for node in context.module.nodes[::-1]:
        for rule in of_kind.get(type(node), ()):
            rule.apply(node, context)
    return context.result()
