"""An HTML page of sections and tables, with a light and a dark colour scheme."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

# The colours of series and guests are set here alone, once for each scheme.
STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif;
  --ink: #1d2126; --faint: #6a737d; --rule: #8884; --paper: #fff;
  --a: #2563c9; --b: #d9660a; --c: #1e8449; --d: #8e44ad; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e3e7ec; --faint: #98a2ad; --paper: #14171b;
  --a: #6aa5ff; --b: #ffa04d; --c: #5fce8b; --d: #c792ea; } }
body { max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .4rem 0; } .faint { color: var(--faint); }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; }
tr + tr td { border-top: 1px solid var(--rule); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-size: .9em; }
.scroll { overflow-x: auto; }
svg { display: block; max-width: 100%; font: 11px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .faint { fill: var(--faint); }
.a { --line: var(--a); } .b { --line: var(--b); }
.c { --line: var(--c); } .d { --line: var(--d); }
"""


def page(title: str, body: Iterable[str], *, style: str = "") -> str:
    """A whole page.

    Args:
      title: the title and the heading, as plain text.
      body: the rest, as HTML.
      style: CSS beside `STYLE`.
    """
    name = html.escape(title)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{name}</title><style>{STYLE}{style}</style></head><body>",
            f"<h1>{name}</h1>",
            *body,
            "</body></html>\n",
        ]
    )


def table(
    rows: Sequence[Sequence[str]],
    header: Sequence[str] = (),
    *,
    numbers_from: int | None = None,
) -> str:
    """A table of plain text.

    Args:
      rows: the cells.
      header: the first row.
      numbers_from: the columns from this one on are aligned right.
    """

    def row(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} class="number">{html.escape(cell)}</{tag}>'
            if numbers_from is not None and place >= numbers_from
            else f"<{tag}>{html.escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )

    lines = [row(header, "th")] if header else []
    lines += [row(cells, "td") for cells in rows]
    whole = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table>{whole}</table></div>'
