"""Methods of pictures and fonts that Pillow and Matplotlib removed."""

from __future__ import annotations

from typing import Any

import numpy as np


def getsize(self: Any, text: object, *args: Any, **kwargs: Any) -> tuple[int, int]:
    """`getsize` of a font, removed in Pillow 10: width, and height from the top."""
    stroke = kwargs.get("stroke_width", args[3] if len(args) > 3 else 0)
    # `getbbox` has `mode` before these arguments.
    places = ("direction", "features", "language", "stroke_width")
    options = dict(zip(places, args, strict=False)) | kwargs
    left, _, right, bottom = self.getbbox(text, **options)
    return right - left, bottom + stroke


def textsize(
    self: Any,
    text: Any,
    font: object = None,
    spacing: int = 4,
    *args: Any,
    **kwargs: Any,
) -> tuple[int, int]:
    """`ImageDraw.textsize`, removed in Pillow 10; lines are `spacing` pixels apart."""
    font = self.getfont() if font is None else font
    lines = text.split(b"\n" if isinstance(text, bytes) else "\n")
    if len(lines) == 1:
        return getsize(font, text, *args, **kwargs)
    height = getsize(font, "A", *args, **kwargs)[1] + spacing
    widths = [getsize(font, line, *args, **kwargs)[0] for line in lines]
    return max(widths), len(lines) * height - spacing


def tostring_rgb(self: Any) -> bytes:
    """`FigureCanvasAgg.tostring_rgb`, removed in Matplotlib 3.10: red, green, blue."""
    pixels: bytes = np.asarray(self.buffer_rgba())[..., :3].tobytes()
    return pixels


def set_window_title(self: Any, title: str) -> None:
    """`FigureCanvasAgg.set_window_title`, removed in Matplotlib 3.6."""
    if self.manager is not None:
        self.manager.set_window_title(title)
