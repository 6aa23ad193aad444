"""Adds pages from outside of `docs/` and the commands' help to the site.

MkDocs calls this file (`hooks` in mkdocs.yml). It adapts links, which work in the
repository too.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from reference_pages import for_site

from hookbridge.cli import command

ROOT = Path(__file__).resolve().parent.parent
# Page of the site -> file of the repository.
OUTSIDE = {
    "benchmarks.md": "benchmarks/README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}
PAGES = {file: page for page, file in OUTSIDE.items()} | {"README.md": "index.md"}
# What `architecture.md` says where the site has the table itself.
OF_THE_SITE = "The documentation's site lists the sentences of all rooms here."
COMMAND_LINE = """# Command line

`python -m hookbridge` is the same as `hookbridge`. Exit codes: 0 for success; 1 if the
command found something wrong; 2 for bad input, which one line names; 130 after Ctrl-C;
141 if the program that reads the output has ended. `cluster` and `run` end with the
exit code of what they ran, `train` with the exit code of its
[job](../your-cluster.md#exit-codes).
"""


def on_config(config: Any) -> Any:
    """Links to the repository that this checkout comes from, if it has an address."""
    command_words = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    remote = subprocess.run(command_words, capture_output=True, text=True, check=False)
    if remote.stdout.startswith("https://"):
        config["repo_url"] = remote.stdout.strip().removesuffix(".git")
        config["repo_name"] = "Source"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages of `OUTSIDE`, the commands' help, the style and a script."""
    for page, file in OUTSIDE.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    page = "reference/command-line.md"
    files.append(File.generated(config, page, content=command_line()))
    for name in ("iframe-worker.js", "site.css"):
        text = (ROOT / ".ci" / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def command_line() -> str:
    """The help of each command, as a page in Markdown."""
    parts = [COMMAND_LINE, f"```text\n{command.usage()}\n```\n"]
    for name in command.COMMANDS:
        _, parser = command.parser_of(name)
        text = parser.format_help().rstrip()
        parts.append(f"## `hookbridge {name}`\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def first_screens() -> str:
    """The README's picture, both diffs, reasons, and how to install and look."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = text.replace("](docs/pictures/", "](pictures/").replace("](docs/", "](")
    text = text.replace("](tests/", "](../tests/")
    first, *rest = re.split(r"^(?=## )", text, flags=re.M)
    before, table, after = re.split(r"</?table>", first)
    titles = re.findall("<th>(.*?)</th>", table)
    diffs = re.findall("```diff.*?```", table, re.S)
    # One above the other: the site's column is narrower than the README's.
    pairs = zip(titles, diffs, strict=True)
    shown = (f"**{title}**\n\n{diff}" for title, diff in pairs)
    sections = (s for s in rest if s.startswith("## Install"))
    return "\n\n".join((before, *shown, after, *sections, "## Start"))


def rooms() -> str:
    """The first sentence of each room's `__init__.py` as a table."""
    rows = ["| room | what it is for |", "|---|---|"]
    for top in ("adapters", "hookbridge"):
        for file in sorted((ROOT / top).rglob("*/__init__.py")):
            doc = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
            folder = file.parent.relative_to(ROOT).as_posix()
            if not folder.startswith("hookbridge/adapters"):
                rows.append(
                    f"| `{folder}/` | {' '.join(doc.split(chr(10) * 2)[0].split())} |"
                )
    return "\n".join(rows)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Turns links between files of the repository into links of the site."""
    own = page.file.src_uri
    if own.startswith("reference/"):
        markdown = for_site(markdown)
    if own == "index.md":
        markdown = f"{first_screens()}\n{markdown.partition('## Start')[2]}"
    if own == "architecture.md":
        before, after = markdown.split(f"{OF_THE_SITE}\n\n## The rules")
        markdown = f"{before}{rooms()}\n\n## The rules{after}"
    markdown = markdown.replace("](../docs/pictures/", "](pictures/")
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
        if name.startswith("docs/reference/"):
            # The site's headings of the reference have an object's whole name.
            anchor = anchor.replace("#", "#hookbridge.")
        if name.startswith("docs/"):
            return f"[{text}]({up}{name.removeprefix('docs/')}{anchor})"
        # A file of the sources, which the site does not have.
        source = f"{config.repo_url}/blob/main/{name}{anchor}"
        return f"[{text}]({source})" if config.repo_url else text

    return re.sub(r"(?<!!)\[([^\]\n]*)\]\(([^)#\s]+)(#[^)\s]*)?\)", linked, markdown)
