"""What a rule is given: the module, its names, and where to note what it did."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from hookbridge.migrate.fates import Fate, fate
from hookbridge.migrate.findings import Finding
from hookbridge.migrate.guest_classes import Guests
from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.reading.programs import Place
from hookbridge.migrate.rewriting.imports import Imports, first_code
from hookbridge.migrate.rewriting.results import Edit
from hookbridge.migrate.rewriting.tree_names import TreeNames, dotted
from hookbridge.migrate.target import Target


class Context:
    """One rewrite of one module.

    Attributes:
      source: the module as the scan reads it.
      place: where it stands in its program.
      module: its syntax tree.
      names: what its names mean.
      imports: what it imports, and what it has to import.
      target: the names of the target TensorFlow.
      findings: what the scan found in it.
      codes: reason codes that the rules of this rewrite settle.
      kept: names that keep their meaning, so that no rule renames their uses.
      values: `{name: [each value that it is given]}`; None for a value that is not
        certain.
      chains: the outermost chains of names, such as `tf.train.Server`.
      import_nodes: the imports, at the top and inside of functions.
      guests: the guest classes of this file and of others.
      edits: what was done, in the order of the walk.
      comments: `{statement of the old tree: [comments above it]}`.
    """

    def __init__(
        self,
        wrapper: MetadataWrapper,
        source: Module,
        place: Place,
        target: Target,
        guests: Mapping[str, str],
        findings: list[Finding],
        codes: frozenset[str],
    ) -> None:
        self.source, self.place = source, place
        self.module = wrapper.module
        self.target = target
        self.codes = codes
        self._parents = _parents(self.module)
        self._positions = wrapper.resolve(PositionProvider)
        self._lines = source.source.text.split("\n")
        self._ascii = source.source.text.isascii()
        self.names = TreeNames(source.names, self._place_of, self.target)
        self._found: dict[tuple[int, int], list[Finding]] = {}
        for finding in findings:
            line = source.source.line(finding.cell, finding.line)
            begin = line, self._characters(line, finding.column)
            self._found.setdefault(begin, []).append(finding)
        self.findings = findings
        self.kept: set[str] = set()
        self.edits: list[Edit] = []
        self.comments: dict[cst.CSTNode, list[str]] = {}
        collector = _Collector()
        self.module.visit(collector)
        self.chains = tuple(collector.chains)
        self.import_nodes = tuple(collector.imports)
        self.values = collector.values
        self.guests = Guests([source], guests)
        imported = {
            name: value
            for name, value in source.names.bound.items()
            if name in source.names.of_its_own and name not in source.names.aliases
        }
        self.imports = Imports(imported, frozenset(collector.names), place.own)
        end = first_code(self.module.body)
        last = self.line(self.module.body[end]) if end < len(self.module.body) else None
        for name, statement in source.names.aliases.items():
            if last is None or statement.lineno < last:
                self.imports.bind(name, source.names.bound[name])

    @property
    def text(self) -> str:
        """The old code."""
        return self.source.source.text

    def fate(self, name: str) -> Fate | None:
        """What becomes of a canonical name in this file; None if the target has it."""
        outcome = fate(name, self.target)
        if outcome is not None and outcome.code == "KERAS_PRIVATE":
            # In a file of TensorFlow 1 the public Keras is that of v1.
            return outcome._replace(living=self.names.meant(outcome.living))
        return outcome

    def keep_aliases(self) -> None:
        """Notes aliases of names that change: only the alias changes, not its uses."""
        for name in self.source.names.aliases:
            value = self.names.meant(canonical(self.source.names.bound[name]))
            outcome = fate(value, self.target)
            if outcome is not None and outcome.living and outcome.code in self.codes:
                self.kept.add(name)

    def _characters(self, line: int, column: int) -> int:
        """The 0-based place in characters of a 1-based place in bytes of a line."""
        if not 0 < line <= len(self._lines):
            return column - 1
        return len(self._lines[line - 1].encode()[: column - 1].decode())

    def _place_of(self, node: cst.CSTNode) -> tuple[int, int]:
        """The 1-based line of a node and its 0-based column in bytes."""
        position = self._positions.get(node)
        if position is None:
            return 0, 0  # a node that a rule has made
        line, column = position.start.line, position.start.column
        if self._ascii:
            return line, column
        return line, len(self._lines[line - 1][:column].encode())

    def found(self, node: cst.CSTNode, code: str) -> Finding | None:
        """The finding with this code at the place where the node begins."""
        start = self._positions[node].start
        for finding in self._found.get((start.line, start.column), ()):
            if finding.code == code:
                return finding
        return None

    def is_guarded(self, node: cst.CSTNode) -> bool:
        """Whether the program is prepared for the failure of an import."""
        return self.line(node) in self.source.guarded_lines

    def line(self, node: cst.CSTNode) -> int:
        """The 1-based line that a node begins in."""
        return int(self._positions[node].start.line)

    def value_of(self, name: str) -> cst.BaseExpression | None:
        """The value of a name, if it is given exactly one in the whole file."""
        values = self.values.get(name, [])
        return values[0] if len(values) == 1 else None

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds this one."""
        return self._parents.get(node)

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The line or block of the old tree that a node is in."""
        kinds = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
        while not isinstance(node, kinds):
            above = self.parent(node)
            if above is None:
                break
            node = above
        return node

    def code(self, node: cst.CSTNode) -> str:
        """The source of a node alone."""
        return self.module.code_for_node(node).strip()

    def edit(
        self, rule: str, old: cst.CSTNode, new: cst.CSTNode | str, note: str = ""
    ) -> None:
        """Notes one change."""
        after = new if isinstance(new, str) else self.code(new)
        self.edits.append(Edit(rule, self.line(old), self.code(old), after, note))

    def comment(self, node: cst.CSTNode, text: str) -> None:
        """Puts a comment above the statement of a node, once."""
        held = self.comments.setdefault(self.statement(node), [])
        line = self.line(self.statement(node)) - 2
        while line >= 0 and self._lines[line].lstrip().startswith("#"):
            if self._lines[line].strip() == text:
                return
            line -= 1
        if text not in held:
            held.append(text)


def _parents(module: cst.Module) -> dict[cst.CSTNode, cst.CSTNode]:
    """Node -> the node that holds it; libcst's provider would take three more walks."""
    parents: dict[cst.CSTNode, cst.CSTNode] = {}
    waiting: list[cst.CSTNode] = [module]
    while waiting:
        node = waiting.pop()
        children = node.children
        parents.update(dict.fromkeys(children, node))
        waiting += children
    return parents


class _Collector(cst.CSTVisitor):
    """The outermost chains of names, and all names that are used."""

    def __init__(self) -> None:
        super().__init__()
        self.chains: list[cst.Attribute | cst.Name] = []
        self.imports: list[cst.Import | cst.ImportFrom] = []
        self.names: set[str] = set()
        self.values: dict[str, list[cst.BaseExpression | None]] = {}

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._bind(target.target, node.value)

    def _bind(self, target: cst.CSTNode, value: cst.BaseExpression | None) -> None:
        if isinstance(target, cst.Name):
            self.values.setdefault(target.value, []).append(value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value, None)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target, None)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target, None)

    def visit_Param(self, node: cst.Param) -> None:
        self._bind(node.name, None)

    def visit_Call(self, node: cst.Call) -> None:
        # `hooks.append(...)`: what the list holds is not certain any more.
        if (
            isinstance(node.func, cst.Attribute)
            and isinstance(node.func.value, cst.Name)
            and node.func.attr.value in ("append", "extend", "insert")
        ):
            self._bind(node.func.value, None)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        chain = dotted(node)
        if chain is None:
            return True
        self.chains.append(node)
        self.names.add(chain.partition(".")[0])
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.chains.append(node)
        self.names.add(node.value)

    def visit_Import(self, node: cst.Import) -> bool:
        self.imports.append(node)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        self.imports.append(node)
        return False
