"""Each rule of a rewrite: what it changes, and what it leaves.

Each rule has its own file of cases in `rewrites/`, and all rules together have `all`. A
text without an import gets the line `import tensorflow as tf` above it.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from hookbridge import old_programs as migrate
from hookbridge.old_programs.rewriting.rules.dead_imports import HIDDEN

ONE_TENSORFLOW = True
CASES = Path(__file__).parent / "rewrites"
HEADER = "import tensorflow as tf\n"
ALL = "all"


class Case(NamedTuple):
    """The texts before and after a rule; equal if the rule has nothing to do."""

    rule: str
    name: str
    before: str
    after: str


def cases() -> list[Case]:
    found = []
    for path in sorted(CASES.glob("*.txt")):
        parts = re.split(
            r"^=== (changed|same): (.+)\n", path.read_text("utf-8"), flags=re.M
        )
        for kind, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            before, _, after = text.partition("---\n")
            assert bool(after) is (kind == "changed"), f"{path.stem}: {name}"
            has_import = re.search(r"^\s*(import|from) ", before, re.M)
            header = "" if has_import else HEADER
            before, after = header + before.strip("\n"), header + after.strip("\n")
            before += "\n"
            after = f"{after}\n" if kind == "changed" else before
            found.append(Case(path.stem.replace("_", "-"), name, before, after))
    return found


def is_changed(case: Case) -> bool:
    return case.before != case.after


@pytest.mark.parametrize("case", cases(), ids=lambda c: f"{c.rule}: {c.name}")
def test_the_rule_does_this_and_nothing_else(case: Case) -> None:
    done = migrate.rewrite(case.before, only=[case.rule] if case.rule != ALL else [])
    assert done.source == case.after
    assert bool(done.edits) is is_changed(case)
    assert case.rule == ALL or {edit.rule for edit in done.edits} <= {case.rule}
    # With all rules, a second rewrite has nothing to do.
    first = migrate.rewrite(case.before)
    second = migrate.rewrite(first.source)
    assert second.source == first.source
    assert second.todos == first.todos
    assert not second.edits


def test_each_rule_has_cases() -> None:
    assert {c.rule for c in cases()} == {ALL, *(rule.name for rule in migrate.REWRITES)}


def test_the_docs_show_each_rule_with_a_diff(repo_root: Path) -> None:
    text = (repo_root / "docs" / "migration.md").read_text("utf-8")
    diffs = re.findall(r"^### (\S+)\n[^#]*?^```diff\n((?:[-+ ].*\n)+)```", text, re.M)
    assert [name for name, _ in diffs] == [rule.name for rule in migrate.REWRITES]
    assert all(re.search(r"^\+", diff, re.M) for _, diff in diffs)


def test_modules_that_folders_hide_are_imported_below_compat_v2() -> None:
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent
    public = folder / "_api" / "v2"
    names = [p.parent.name for p in public.glob("*/__init__.py")]
    hidden = {f"tf.{name}" for name in names if (folder / name).is_dir()}
    assert hidden and hidden <= set(HIDDEN)
    for name in hidden:
        assert (public / "compat" / "v2" / name.removeprefix("tf.")).is_dir()
