"""All rules of a rewrite, in the order in which they are applied.

To add a rule, write a module like `old_arguments` with `apply` and `RULE`, name it
here, show it in docs/migration.md and add its cases to tests/migrate/rewrites: tests
compare the three. A rule of your own program needs none of this: give it to
`hb.old_programs.rewrite(rules=...)`.
"""

from __future__ import annotations

from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.old_programs.rewriting.rules import (
    dead_imports,
    dead_names,
    guest_lists,
    old_arguments,
    starred_imports,
    switches,
    v1_imports,
)

# `v1-imports` is first: it decides what `tf` means.
REWRITES: tuple[RewriteRule, ...] = (
    v1_imports.RULE,
    starred_imports.RULE,
    dead_imports.RULE,
    dead_names.RULE,
    old_arguments.RULE,
    guest_lists.RULE,
    switches.RULE,
)
