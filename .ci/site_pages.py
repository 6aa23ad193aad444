"""Adds pages from outside of `docs/` to the site, and adapts the links to them.

MkDocs calls this file (`hooks` in mkdocs.yml). The same links work in the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
# Page of the site -> file of the repository.
OUTSIDE = {
    "benchmarks.md": "benchmarks/README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}
PAGES = {file: page for page, file in OUTSIDE.items()} | {"README.md": "index.md"}


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages of `OUTSIDE`."""
    for page, file in OUTSIDE.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links between files of the repository into links of the site."""
    own = page.file.src_uri
    folder = (ROOT / OUTSIDE.get(own, f"docs/{own}")).parent
    up = "../" * own.count("/")

    def linked(match: re.Match[str]) -> str:
        text, target, anchor = match.groups(default="")
        file = (folder / target).resolve()
        if "://" in target or not file.is_relative_to(ROOT):
            return match[0]
        name = file.relative_to(ROOT).as_posix()
        if name in PAGES:
            return f"[{text}]({up}{PAGES[name]}{anchor})"
        if name.startswith("docs/"):
            return f"[{text}]({up}{name.removeprefix('docs/')}{anchor})"
        return text  # a file of the sources, which the site does not have

    return re.sub(r"(?<!!)\[([^\]\n]*)\]\(([^)#\s]+)(#[^)\s]*)?\)", linked, markdown)
