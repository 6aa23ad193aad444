"""The pages of README and docs, and their code blocks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in (
        *(ROOT / n for n in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *sorted((ROOT / "docs").glob("**/*.md")),
        ROOT / "benchmarks" / "README.md",
    )
]


class Block(NamedTuple):
    language: str
    line: int
    text: str


def blocks(page: str, *languages: str) -> list[Block]:
    """The fenced code blocks of a page: all, or those in the given languages."""
    text = (ROOT / page).read_text("utf-8")
    found = [
        Block(match[1], text[: match.start()].count("\n") + 1, match[2])
        for match in re.finditer(r"^```(\S*)\n(.*?)^```$", text, re.M | re.S)
    ]
    return [b for b in found if not languages or b.language in languages]
