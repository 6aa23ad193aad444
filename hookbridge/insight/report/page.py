"""An HTML page of sections and tables, with a light and a dark colour scheme."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from string import Template

from hookbridge.ground.imports.package_files import packaged

_TEMPLATE = packaged("hookbridge.insight.report", "page.html")
_LONG = 12  # characters of a word that may be broken


def page(title: str, body: Iterable[str]) -> str:
    """Return a whole page: the title is plain text, the body HTML."""
    template = Template(_TEMPLATE.read_text("utf-8"))
    return template.substitute(title=html.escape(title), body="\n".join(body))


def table(
    rows: Sequence[Sequence[str]],
    header: Sequence[str] = (),
    *,
    numbers_from: int | None = None,
) -> str:
    """Return the HTML of a table of plain text.

    Args:
      rows: the cells of each row.
      header: the titles of the columns; empty for a table without titles.
      numbers_from: the first column that is aligned right; None aligns all left.
    """

    def row(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} class="number">{html.escape(cell)}</{tag}>'
            if numbers_from is not None and index >= numbers_from
            else f"<{tag}>{words(cell)}</{tag}>"
            for index, cell in enumerate(cells)
        )

    lines = [row(header, "th")] if header else []
    lines += [row(cells, "td") for cells in rows]
    whole = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table>{whole}</table></div>'


def words(text: str) -> str:
    """Return HTML with code for `code`; long names may break between their parts."""
    parts = (
        re.sub(r"(?<=[./_])(?=\w)", "<wbr>", word) if len(word) > _LONG else word
        for word in html.escape(text).split(" ")
    )
    return re.sub("`([^`]+)`", r"<code>\1</code>", " ".join(parts))
