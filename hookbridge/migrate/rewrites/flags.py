"""absl flags that are read while the program is imported.

    +FLAGS(sys.argv)
     rate = FLAGS.rate

TF1's own flags parsed the command line at the first read; absl's raise an error before
`app.run` has parsed it.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted

NAME = "flags"


class EarlyFlags:
    """The first statement that reads a flag too early."""

    def __init__(self, context: Context) -> None:
        # The statement; None if there is none.
        self.statement: cst.CSTNode | None = None
        self.name = ""
        flags = [n for n, v in context.imports.bound.items() if v == "absl.flags"]
        values = {f"{flags[0]}.FLAGS"} if flags else set()
        for statement in context.module.body if flags else ():
            if not isinstance(statement, cst.SimpleStatementLine):
                continue
            for small in statement.body:
                if isinstance(small, cst.Assign) and dotted(small.value) in values:
                    values |= {dotted(target.target) or "" for target in small.targets}
            finder = _Reads(values - {""})
            statement.visit(finder)
            if finder.parses:
                return
            if finder.found:
                self.statement, self.name = statement, finder.found
                return


class _Reads(cst.CSTVisitor):
    """Whether a statement reads a flag, or parses the command line."""

    def __init__(self, values: set[str]) -> None:
        super().__init__()
        self._values = values
        self.found = ""
        self.parses = False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = dotted(node)
        if name is None:
            return True
        owner = name.rpartition(".")[0]
        if owner in self._values and node.attr.value != "mark_as_parsed":
            self.found = owner
        return False

    def visit_Call(self, node: cst.Call) -> None:
        self.parses |= dotted(node.func) in self._values
        self.parses |= (dotted(node.func) or "").endswith("mark_as_parsed")

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False


def apply(
    old: cst.SimpleStatementLine, new: cst.SimpleStatementLine, context: Context
) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
    """Puts the line that parses the flags above the first statement that reads one."""
    early = context.state(EarlyFlags)
    if early.statement is not old:
        return new
    line = f"{early.name}({context.imports.name_of('sys')}.argv)"
    parse = cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine)
    context.edit(NAME, old, f"{line}\n{context.code(new)}")
    parse = parse.with_changes(leading_lines=new.leading_lines)
    return cst.FlattenSentinel([parse, new.with_changes(leading_lines=())])


RULE = RewriteRule(
    name=NAME,
    summary="Flags that are read at import are parsed before.",
    nodes=(cst.SimpleStatementLine,),
    apply=apply,
    words=("absl",),
)
