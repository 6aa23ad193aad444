"""Tables as lines of text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Return a line for each row, with columns of equal width.

    Args:
      rows: the cells of each row; an empty row is an empty line.
      left: the number of columns that are aligned left; the others are aligned right.
    """
    widths = [max(map(len, column)) for column in zip(*filter(None, rows), strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    ]
