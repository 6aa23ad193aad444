"""All rules of a rewrite, in the order in which they are asked.

To add a rule, write a module like `old_arguments` with `apply` and `RULE`, name it
here, show it in docs/migration.md and add its cases to tests/migrate/rewrites: tests
compare the three. A rule of your own program needs none of this: give it to
`migrate.rewrite(rules=...)`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hookbridge import errors
from hookbridge.old_programs.rewrites import (
    guest_lists,
    imports,
    names,
    old_arguments,
    switches,
    v1_imports,
)
from hookbridge.old_programs.rewriting.rule import RewriteRule

# `v1-imports` is first: it decides what `tf` means.
REWRITES: tuple[RewriteRule, ...] = (
    v1_imports.RULE,
    imports.RULE,
    names.RULE,
    old_arguments.RULE,
    guest_lists.RULE,
    switches.RULE,
)
# Writing the comments is no rule for the tree, but is chosen by name like a rule.
TODOS = "todos"


def chosen(
    rules: Sequence[RewriteRule], only: Collection[str], skip: Collection[str]
) -> tuple[list[RewriteRule], bool]:
    """The rules that `only` and `skip` leave, and whether comments are written."""
    names = [*(rule.name for rule in rules), TODOS]
    for name in (*only, *skip):
        if name not in names:
            raise errors.InvalidArgumentError(
                f"Received the rule {name!r}; expected one of {', '.join(names)}."
            )
    choice = [n for n in names if (not only or n in only) and n not in skip]
    return [rule for rule in rules if rule.name in choice], TODOS in choice
