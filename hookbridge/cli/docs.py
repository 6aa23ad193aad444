"""`hookbridge docs`: a page of the documentation, or one section of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hookbridge import errors
from hookbridge.cli.parser import Parser, Values
from hookbridge.docs_pages import anchor
from hookbridge.ground.imports.package_files import files_below, of_wheel
from hookbridge.ground.texts import nearest_names

SUMMARY = "Print a page of the documentation by the name that errors use."
USAGE = "[PAGE[#HEADING]]"
EXAMPLE = "hookbridge docs hook-support.md#why-a-hook-is-refused"
NOTE = "Without PAGE it prints the list of pages."
FOLDER = of_wheel("hookbridge.cli", "pages", in_checkout="docs")


def define_flags(parser: Parser) -> None:
    """Define the command's argument: the page."""
    parser.argument("page", "?")


def run(values: Values) -> int:
    """Print the page or section."""
    address = values.page or "index.md"
    page, _, heading = address.removeprefix("docs/").partition("#")
    page = f"{page.removesuffix('.md')}.md"
    _check("page", page, list(files_below(FOLDER, ".md")))
    lines = FOLDER.joinpath(*page.split("/")).read_text("utf-8").splitlines()
    if heading:
        heading = heading.lower()  # reports have the names of codes in capitals
        _check("heading", heading, [anchor(lines[at]) for at in _headings(lines)])
        lines = _section(lines, heading)
    print("\n".join(lines).strip())
    return 0


def _check(kind: str, name: str, choices: Sequence[str]) -> None:
    if name not in choices:
        nearest = nearest_names.suggestion(name, choices)
        raise errors.InvalidArgumentError(
            f"Received the {kind} {name!r}, which does not exist{nearest}. "
            "`hookbridge docs` lists the pages."
        )


def _headings(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines that are headings; comments in code are not."""
    is_code = False
    for index, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if line.startswith("#") and not is_code:
            yield index


def _section(lines: list[str], heading: str) -> list[str]:
    """Return a heading and what follows, up to the next one that is not below it."""
    places = [p for p in _headings(lines) if anchor(lines[p]) == heading]
    depth = lines[places[0]].partition(" ")[0]
    ends = (
        index
        for index in _headings(lines)
        if index > places[0] and len(lines[index].partition(" ")[0]) <= len(depth)
    )
    return lines[places[0] : next(ends, len(lines))]
