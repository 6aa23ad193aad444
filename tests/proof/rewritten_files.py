"""Counts what `hookbridge migrate rewrite` loses in Python files of others.

    python -m tests.proof.rewritten_files FOLDER...

Each folder is a repository, which is not changed. Of the files that a rewrite changes,
it counts the comments that are gone, the imports that are gone though they work on the
installed TensorFlow, the rewrites that fail or are no Python, and the lines that
changed though no edit names a part of them. The exit code is 1 if there are any.
tests/proof/README.md has the numbers.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from lost_parts import bound_in, imported, lost_comments, working  # noqa: E402
from source_trees import is_python  # noqa: E402

from hookbridge.old_programs.reading.one_file.modules import Unread  # noqa: E402
from hookbridge.old_programs.rewriting.file_rewrites import (  # noqa: E402
    FileRewrite,
    rewrite_files,
)

CHANGED = "files changed"
KINDS = ("comments lost", "imports lost", "crashes", "unnamed changes")


def lost_imports(before: str, after: str, folder: str) -> list[str]:
    """The names whose imports are gone though they work, or are the program's own."""
    gone = Counter(b for _, _, b in imported(before)) - bound_in(after)
    pairs = [(m, n) for m, n, bound in imported(before) if gone[bound]]
    works = working([p for p in pairs if not p[0].startswith(".")], folder)
    return [f"{m} {n}" for m, n in pairs if m.startswith(".") or (m, n) in works]


def unnamed_changes(rewrite: FileRewrite) -> Iterator[str]:
    """The lines that are gone or differ by a byte, and that no edit names."""
    module = rewrite.module
    after = rewrite.content.encode(module.encoding)
    parts = [part for edit in rewrite.result.edits for part in edit.before.split("\n")]
    named = {part.strip() for part in parts} - {""}
    old, new = (
        content.splitlines(keepends=True) for content in (module.content, after)
    )
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    there = set(new)
    for kind, first, end, start, stop in matcher.get_opcodes():
        if kind in ("equal", "insert"):
            continue
        for line in old[first:end]:
            if line in there:  # it moved
                continue
            text = line.decode(module.encoding).strip()
            is_named = any(text in part or part in text for part in named)
            is_same = any(
                line.split() == new_line.split() for new_line in new[start:stop]
            )
            if is_same or not is_named:
                yield text


def losses(folder: str) -> Iterator[tuple[str, str, str]]:
    """What the rewrite of a repository loses: the kind, the file and the part."""
    for rewrite in rewrite_files([folder]):
        if isinstance(rewrite, Unread):
            if "report it" in rewrite.reason:
                yield "crashes", rewrite.file, rewrite.reason
            continue
        before, after = rewrite.result.before, rewrite.content
        if rewrite.module.notebook or not rewrite.result.changed:
            continue
        file = os.path.relpath(rewrite.module.file, folder)
        yield CHANGED, file, ""
        if not is_python(after):
            yield "crashes", file, "the new text is no Python"
            continue
        parts = (
            lost_comments(before, after),
            lost_imports(before, after, folder),
            (),
            unnamed_changes(rewrite),
        )
        for kind, lost in zip(KINDS, parts, strict=True):
            yield from ((kind, file, part) for part in lost)


def main(folders: Sequence[str]) -> int:
    """Prints what is lost in each repository, and the sums."""
    counts: Counter[str] = Counter()
    for folder in folders:
        for kind, file, part in losses(folder):
            counts[kind] += 1
            if kind != CHANGED:
                print(f"{kind}: {folder}/{file}: {part}", flush=True)
    print(", ".join(f"{counts[kind]} {kind}" for kind in (CHANGED, *KINDS)))
    return int(any(counts[kind] for kind in KINDS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
