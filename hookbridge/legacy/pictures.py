"""Functions of pictures that SciPy removed.

`imread`, `imsave`, `imresize` and `toimage` of `scipy.misc`, removed in 1.2 and 1.3,
were thin covers of Pillow; so are these. Arrays are `[height, width]` or
`[height, width, channels]`.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def _pillow() -> Any:
    return importlib.import_module("PIL.Image")


def imread(name: object, flatten: bool = False, mode: str | None = None) -> Any:
    """`scipy.misc.imread`: the picture of a file as an array."""
    with _pillow().open(name) as opened:
        picture = opened.convert(mode) if mode is not None else opened
        if mode is None and picture.mode == "P":
            has_alpha = "transparency" in picture.info
            picture = picture.convert("RGBA" if has_alpha else "RGB")
        if flatten:
            picture = picture.convert("F")
        elif picture.mode == "1":
            picture = picture.convert("L")
        return np.array(picture)


def imsave(name: object, arr: object, format: str | None = None) -> None:
    """`scipy.misc.imsave`: scales the values to 0..255 and writes a picture."""
    _pillow().fromarray(bytescale(np.asarray(arr))).save(name, format=format)


def imresize(
    arr: object, size: Any, interp: str = "bilinear", mode: object = None
) -> Any:
    """`scipy.misc.imresize`; `size` is a percentage, a fraction, or a shape."""
    picture = _pillow().fromarray(bytescale(np.asarray(arr)), mode=mode)
    if isinstance(size, int | np.integer):
        shape = tuple(int(side * size / 100.0) for side in picture.size)
    elif isinstance(size, float | np.floating):
        shape = tuple(int(side * size) for side in picture.size)
    else:
        shape = size[1], size[0]
    how = {
        "nearest": 0,
        "lanczos": 1,
        "bilinear": 2,
        "bicubic": 3,
        "cubic": 3,
    }
    return np.array(picture.resize(shape, resample=how[interp]))


def toimage(
    arr: object,
    high: float = 255,
    low: float = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    *,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """`scipy.misc.toimage`: a picture of Pillow; `cmin` to `cmax` become the bytes."""
    data = np.asarray(arr)
    if mode == "F":
        return _pillow().fromarray(data.astype(np.float32))
    if data.ndim == 3:
        sizes = [data.shape.index(size) for size in (3, 4) if size in data.shape]
        axis = sizes[0] if channel_axis is None else channel_axis
        data = np.moveaxis(data, axis, 2)
    scaled = bytescale(data, cmin, cmax, high, low)
    picture = _pillow().fromarray(np.ascontiguousarray(scaled))
    return picture if mode is None else picture.convert(mode)


def bytescale(
    data: Any,
    cmin: float | None = None,
    cmax: float | None = None,
    high: float = 255,
    low: float = 0,
) -> Any:
    """`scipy.misc.bytescale`: the values as bytes, scaled from `cmin` to `cmax`."""
    if data.dtype == np.uint8:
        return data
    least = float(data.min()) if cmin is None else cmin
    most = float(data.max()) if cmax is None else cmax
    scale = (high - low) / ((most - least) or 1.0)
    scaled = (data - least) * scale + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)
