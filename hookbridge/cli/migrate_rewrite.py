"""`hookbridge migrate rewrite`: changes TF1 code, or shows how it would."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hookbridge import errors, old_programs
from hookbridge.cli.parser import Parser, Values
from hookbridge.cli.streams import escape_unknown
from hookbridge.ground.texts.counted import counted
from hookbridge.old_programs.reading.one_file.modules import Unread
from hookbridge.tf1_names.target import NEWEST, target_in_words

if TYPE_CHECKING:
    from hookbridge.old_programs.rewriting.file_rewrites import FileRewrite

SUMMARY = "Rewrite TF1 code for a newer TensorFlow, or show the changes."
USAGE = "[--flag=value ...] PATH..."
EXAMPLE = "hookbridge migrate rewrite --diff examples/tf1_script.py"
NOTE = (
    "Exit codes: 0; 1 if a file that was named or is imported, or a cell of a\n"
    "notebook, could not be read, if a file could not be written, or with --check if\n"
    "a file would be rewritten; 2 for a wrong argument."
)
FLAGS = {
    "write": "Change the files.",
    "diff": "Print the changes.",
    "check": "Exit with 1 if a file would be rewritten.",
    "list_rules": "Print the rules.",
}


@dataclass
class _Totals:
    """How many files and comments a rewrite had, and what failed, a line for each."""

    files: int = 0
    changed: int = 0
    todos: int = 0
    unread: int = 0
    apart: int = 0  # of the unread files, those that no file of the program imports
    written: int = 0
    unwritten: int = 0
    failures: list[str] = field(default_factory=list)


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    parser.argument("paths", "*")
    for name, text in FLAGS.items():
        parser.flag(name, False, text)
    text = (
        "Write everything into this new folder and leave the original files unchanged."
    )
    parser.flag("to", "", text)
    parser.flag("only", [], "Apply only these rules, given by name.")
    parser.flag("skip", [], "Skip these rules.")
    parser.flag("target", NEWEST, "The TensorFlow version that the code will run on.")


def run(values: Values) -> int:
    """Rewrite the files under the paths; return the exit code."""
    escape_unknown()
    if values.list_rules:
        unusable_flags = ("check", "write", "to", "diff", "only", "skip")
        values.refuse(unusable_flags, "--list_rules", "it only prints the list")
        print(_rules())
        return 0
    _check_flags(values)
    totals = _Totals()
    plan = list(_shown_changes(values, totals))
    if values.write or values.to:
        _write(plan, totals)
    where = sys.stderr if values.diff else sys.stdout
    _sum_up(totals, target_in_words(values.target), where)
    todo = values.check and not values.write and totals.changed
    is_incomplete = totals.unread > totals.apart or totals.unwritten
    return int(bool(is_incomplete or todo))


def _check_flags(values: Values) -> None:
    """Refuse a command without paths, and flags that contradict each other."""
    if not values.paths:
        raise errors.InvalidArgumentError(
            "Received no paths; expected Python files, notebooks or folders of them."
        )
    if values.write:
        reason = "--check reports what a write would change"
        values.refuse(["check"], "--write", reason)
    if values.to:
        values.refuse(["check", "write"], "--to", "it leaves the files as they are")


def _shown_changes(values: Values, totals: _Totals) -> Iterator[FileRewrite]:
    """Print and yield each rewrite that changes its file; add all files to `totals`."""
    from hookbridge.old_programs.rewriting import file_rewrites

    copies = file_rewrites.copy_to(values.to, values.paths) if values.to else {}
    options = {"target": values.target, "only": values.only, "skip": values.skip}
    for done in file_rewrites.rewrite_files(values.paths, **options):
        if isinstance(done, Unread):
            totals.unread += 1
            totals.apart += done.is_apart
            apart = "; no file that was read imports it" if done.is_apart else ""
            totals.failures.append(f"  {done.file}: {done.reason}{apart}")
            continue
        totals.files += 1
        totals.todos += len(done.result.todos)
        if done.result.changed:
            totals.changed += 1
            rewrite = file_rewrites.for_copy(done, copies)
            _show(os.fspath(rewrite.path), rewrite.result, values.diff)
            yield rewrite


def _write(plan: Sequence[FileRewrite], totals: _Totals) -> None:
    """Write all files; add them, and why some could not be written, to `totals`."""
    from hookbridge.old_programs.rewriting import file_rewrites

    try:
        for path in file_rewrites.write_all(plan):
            totals.written += 1
            print(f"written: {path}", flush=True)
    except errors.UnwritableError as e:
        totals.unwritten = len(plan) - totals.written
        totals.failures.append(f"  {e}")


def _show(name: str, result: old_programs.Rewritten, diff: bool) -> None:
    """Print the change of one file, as a diff or a line for each edit and comment."""
    if diff:
        print(result.diff(name), end="")
        return
    print(name)
    for edit in result.edits:
        before = " ".join(edit.before.split())
        after = " ".join(edit.after.split())
        print(f"  {edit.line}: {edit.rule}: {_short(before)} -> {_short(after)}")
    for todo in result.todos:
        print(f"  {todo.line}: TODO {todo.code} {todo.reason}")


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _sum_up(totals: _Totals, target: str, where: Any) -> None:
    """Print how many files were read and changed, and what failed."""
    did = "rewritten" if totals.written else "would change"
    changed = totals.written or totals.changed
    print(
        f"{counted(totals.files, 'file')} read, {changed} {did}, "
        f"{counted(totals.todos, 'TODO comment')} left for you, "
        f"{totals.unread} not read, {totals.unwritten} not written; {target}",
        *totals.failures,
        sep="\n",
        file=where,
    )


def _rules() -> str:
    width = max(len(rule.name) for rule in old_programs.REWRITES)
    lines = [f"{rule.name:<{width}}  {rule.summary}" for rule in old_programs.REWRITES]
    text = (
        "Comments above the code that needs manual work: `# TODO(hookbridge): CODE "
        "reason`."
    )
    return "\n".join([*lines, f"{'todos':<{width}}  {text}"])
