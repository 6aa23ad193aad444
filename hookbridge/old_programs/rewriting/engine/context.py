"""What a rule is given: a module, what its names mean, and the changes of its text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge.old_programs.reading.names.import_statements import (
    STATEMENTS,
    Import,
    as_v1,
    canonical,
)
from hookbridge.old_programs.reading.names.scopes import Scope
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.rewriting.engine.dotted_text import rename_text
from hookbridge.old_programs.rewriting.engine.import_text import ImportText, statements
from hookbridge.old_programs.rewriting.engine.needed_imports import NeededImports
from hookbridge.old_programs.rewriting.engine.results import Edit
from hookbridge.old_programs.rewriting.engine.text_changes import TextChanges
from hookbridge.old_programs.scanning import private_keras
from hookbridge.old_programs.scanning.findings import Finding
from hookbridge.old_programs.scanning.guests import Guests
from hookbridge.tf1_names.outcome import Resolution
from hookbridge.tf1_names.syntax import enclosing, root_of
from hookbridge.tf1_names.target import Target


class Context:
    """One rewrite of one module.

    Attributes:
      module: the code as the scan reads it.
      in_program: where it stands in its program.
      target: the names of the target TensorFlow.
      findings: what the scan found in it.
      settled_codes: reason codes that the rules of this rewrite settle.
      text: the old code.
      parents: `{node: the node that holds it}`.
      imports: what it imports, and what it has to import.
      guests: the guest classes of this file and of others.
      kept: names that keep their meaning, with the scopes that bind them: no rule
        renames their uses.
      edits: what was done, in the order of the walk.
      changes: the parts of the text that get another text.
    """

    def __init__(
        self,
        module: Module,
        in_program: InProgram,
        target: Target,
        guests: Mapping[str, str],
        findings: Sequence[Finding],
        codes: frozenset[str],
    ) -> None:
        self.module: Module = module
        self.in_program: InProgram = in_program
        self.target: Target = target
        self.findings: Sequence[Finding] = findings
        self.settled_codes: frozenset[str] = codes
        self.text: str = module.text
        self.parents: dict[ast.AST, ast.AST] = module.parents
        self.imports: NeededImports = NeededImports(
            module, in_program.own_modules, target
        )
        self.guests: Guests = Guests([module], guests)
        self.kept: set[tuple[Scope | None, str]] = set()
        self.edits: list[Edit] = []
        self.changes = TextChanges(module)
        # Whether a rule could not change a place, which may be another rule's.
        self.is_unfinished = False

    def keep_aliases(self) -> None:
        """Note aliases of names that change: only the alias changes, not its uses."""
        names = self.module.names
        aliases = [(names.scopes.module, n, names.bound[n]) for n in names.aliases]
        for scope, name, value in [*aliases, *names.inner_aliases()]:
            outcome = self.resolve(self.meant(canonical(value)))
            if (
                outcome is not None
                and outcome.replacement
                and outcome.code in self.settled_codes
            ):
                self.kept.add((scope, name))

    def keep(self, imported: Import) -> None:
        """Note that the name of an import keeps its meaning."""
        scope = self.module.names.scopes.import_scope(imported.node)
        self.kept.add((scope, imported.bound))

    def meant(self, name: str) -> str:
        """Return a canonical name, as one of v1 where the module will mean that."""
        is_new = self.target.has(name) and not self.target.has_v1(name)
        return as_v1(name) if self.imports.is_v1 and not is_new else name

    def name(self, node: ast.AST) -> str | None:
        """Return the canonical dotted name that a node will mean, or None."""
        names = self.module.names
        name = names.canonical(node)
        if name is None:
            return None
        is_whole = names.scopes.is_whole(root_of(node))
        return name if is_whole else self.meant(name)

    def resolve(self, name: str) -> Resolution | None:
        """Return what becomes of a canonical name in this file; None if it stays."""
        return self.in_program.outcome(name, self.target)

    def may_go(self, one: Import) -> bool:
        """Return whether nothing needs, or asks to keep, the name of an import.

        A linter may be told that the import is as it has to be, and other files may
        have the name from this one.
        """
        return private_keras.may_go(one, self.module, self.in_program)

    def is_part(self, node: ast.AST) -> bool:
        """Return whether a node is a part of a longer name."""
        return isinstance(self.parents.get(node), ast.Attribute)

    def is_renamed(self, node: ast.Name) -> bool:
        """Return whether a rule of this rewrite renames the use that begins here."""
        use: ast.AST = node
        while self.is_part(use):
            use = self.parents[use]
        new = self.replacement(use) if isinstance(use, ast.Attribute) else None
        return new is not None and new.code in self.settled_codes

    def replacement(
        self, node: ast.Attribute | ast.Name | ast.Call
    ) -> Resolution | None:
        """Return what becomes of an outermost dotted name, if a rename is enough."""
        root = root_of(node)
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if self.is_part(node) or not is_read:
            return None
        name = self.name(node)
        outcome = None if name is None else self.resolve(name)
        if name is None or outcome is None or not outcome.replacement:
            return None
        stays = self._is_kept(root) and self._is_below_new(root, name)
        return None if stays else outcome

    def _is_kept(self, root: ast.AST) -> bool:
        if not (self.kept and isinstance(root, ast.Name)):
            return False
        return (self.module.names.scopes.binding_scope(root), root.id) in self.kept

    def _is_below_new(self, root: ast.AST, name: str) -> bool:
        """Return whether what replaces the kept root of a name may have the rest."""
        whole = self.name(root)
        new = None if whole is None else self.resolve(whole)
        if whole is None or new is None or not new.replacement:
            return True
        become = self.resolve(new.replacement + name[len(whole) :])
        return become is None or bool(become.replacement)

    def is_found(self, node: ast.expr, code: str) -> bool:
        """Return whether there is a finding with this code at the place of a node."""
        column = self.module.column(node.lineno, node.col_offset)
        position = *self.module.cell_and_line(node.lineno), column
        return any(
            f.code == code and (f.cell, f.line, f.column) == position
            for f in self.findings
        )

    def span(self, node: object) -> tuple[int, int]:
        """Return where a node begins and ends in the text."""
        return self.changes.span(node)

    def code(self, node: ast.AST) -> str:
        """Return the source of a node."""
        first, end = self.span(node)
        return self.text[first:end]

    def replace(self, rule: str, node: ast.AST, text: str) -> bool:
        """Give a node another text.

        Lines and comments inside of a dotted name stay.

        Args:
          rule: the name of the rule that does it.
          node: what is replaced.
          text: its new text.

        Returns:
          Whether that was possible; see `change`.
        """
        if isinstance(node, ast.Attribute):
            text = rename_text(self.code(node), text)
        return self.change(rule, node, self.span(node), text)

    def change(self, rule: str, node: Any, span: tuple[int, int], text: str) -> bool:
        """Give a part of a node, or a place in it, another text.

        Nothing is changed if the new text has not all comments of the old one.

        Args:
          rule: the name of the rule that does it.
          node: the node, for the report of the change.
          span: where the part begins and ends in the text; both are equal for a place.
          text: its new text.

        Returns:
          Whether that was possible. If another change of this walk is there already,
          the next walk may do it.
        """
        first, end = span
        if any(comment not in text for comment in self.changes.comments(span)):
            return False
        if self.changes.has_any((first, end)):
            # The next walk sees what is there then.
            self.is_unfinished |= any(edit.rule != rule for edit in self.edits)
            return False
        if self.is_in_fstring(node) and self.code(node) != ast.unparse(node):
            return False
        self.changes.add(first, end, text)
        self.note(rule, node, self.text[first:end], text)
        return True

    def is_in_fstring(self, node: ast.AST) -> bool:
        """Return whether its place may be wrong, as in f-strings before Python 3.12."""
        while not isinstance(node, ast.JoinedStr | ast.stmt) and node in self.parents:
            node = self.parents[node]
        return isinstance(node, ast.JoinedStr)

    def note(self, rule: str, node: object, old: str, new: str) -> None:
        """Note an edit."""
        self.edits.append(Edit(rule, getattr(node, "lineno", 1), old, new))

    def wrap(self, rule: str, node: ast.expr, before: str, after: str) -> None:
        """Put text before and after an expression.

        Args:
          rule: the name of the rule that does it.
          node: the expression.
          before: the text before it.
          after: the text after it.
        """
        (first, end), source = self.span(node), self.code(node)
        if self.is_in_fstring(node) and source != ast.unparse(node):
            return
        self.changes.add(first, first, before)
        self.changes.add(end, end, after)
        self.note(rule, node, source, f"{before}{source}{after}")

    def replace_import(
        self,
        rule: str,
        node: ast.Import | ast.ImportFrom,
        lines: Mapping[int, str],
        more: Sequence[str] = (),
    ) -> bool:
        """Write statements in the place of names of an import.

        Comments stay with their names. Where nothing is left in a block, `pass` is.

        Args:
          rule: the name of the rule.
          node: the import.
          lines: for each place of a name that leaves the import, the statement that
            takes its place; empty for a name that goes.
          more: statements that come after it.

        Returns:
          Whether that was possible.
        """
        first, end = self.span(node)
        begin, after = self.changes.lines_of(node)
        indent, behind = self.text[begin:first], self.text[end:after].rstrip("\r\n")
        is_alone = not indent.strip() and not behind.partition("#")[0].strip()
        # What is left of it may be for another rule.
        self.is_unfinished |= 0 < len(lines) < len(node.names)
        spans = map(self.span, node.names)
        inside = [(start - first, stop - first) for start, stop in spans]
        whole = ImportText.of(self.text[first:end], inside)
        new = statements(whole, lines, more, behind if is_alone else "")
        is_deleted = len(lines) == len(node.names) and not (any(lines.values()) or more)
        if is_deleted and not (is_alone and self._has_others(node)):
            new.append("pass")
        if not is_alone:
            if self.changes.comments((first, end)):
                return False
            return self.change(rule, node, (first, end), "; ".join(new))
        text = f"{self.changes.newline}{indent}".join(new)
        if not text:
            return self.change(rule, node, (begin, after), "")
        return self.change(rule, node, (first, end + len(behind)), text)

    def _has_others(self, node: ast.stmt) -> bool:
        """Return whether the block of an import has statements that are none."""
        parent = self.parents[node]
        lists = (v for _, v in ast.iter_fields(parent) if isinstance(v, list))
        blocks = (values for values in lists if node in values)
        return isinstance(parent, ast.Module) or any(
            type(statement) not in STATEMENTS for block in blocks for statement in block
        )

    def comment(self, node: ast.AST, text: str) -> None:
        """Put a comment above the statement of a node, once.

        Args:
          node: any node of the statement.
          text: the line, with its `#`.
        """
        statement = enclosing(node, ast.stmt, self.parents)
        self.changes.add_line_above(statement, text)

    def result(self) -> str:
        """Return the text with all changes."""
        return self.imports.add(self.changes.result())
