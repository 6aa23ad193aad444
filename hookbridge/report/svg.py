"""The parts that all pictures of a report share, as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence


def drawing(name: str, width: float, height: float, parts: Iterable[str]) -> str:
    """A picture, with a name for those who cannot see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{html.escape(name)}">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, css: str = "", more: str = "") -> str:
    """Words at a place; `middle` and `end` in `css` say which part of them is there."""
    kind = f' class="{css}"' if css else ""
    return f'<text x="{x}" y="{y}"{kind}{more}>{html.escape(words)}</text>'


def ticks(low: float, high: float, *, whole: bool = False) -> Sequence[float]:
    """Three to six round numbers that span `low` to `high`."""
    if low == high:
        return [low]
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * 0.999)
    if whole:
        step = max(1.0, step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]
