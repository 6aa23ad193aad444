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
    """`scipy.misc.imread`: the picture of a file as an array.

    Args:
      name: the file, open or by name.
      flatten: whether to return shades of gray, as floats.
      mode: the mode of Pillow to convert it to, such as "RGB"; None for its own.

    Returns:
      `[height, width]`, or `[height, width, channels]`.
    """
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
    """`scipy.misc.imsave`: scales the values to 0..255 and writes a picture.

    Args:
      name: the file, open or by name.
      arr: the array; bytes are not scaled.
      format: a format of Pillow, such as "png"; None for that of the name.
    """
    _pillow().fromarray(bytescale(np.asarray(arr))).save(name, format=format)


def imresize(
    arr: object, size: Any, interp: str = "bilinear", mode: object = None
) -> Any:
    """`scipy.misc.imresize`: a picture of another size, as an array of bytes.

    Args:
      arr: the array.
      size: an int is a percentage, a float a fraction, and a pair height and width.
      interp: "nearest", "lanczos", "bilinear", "bicubic" or "cubic".
      mode: the mode of Pillow that the array has; None to see it by its shape.

    Returns:
      The array.
    """
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
    """`scipy.misc.toimage`: a picture of Pillow.

    Args:
      arr: the array; bytes are not scaled.
      high: the byte of `cmax`.
      low: the byte of `cmin`.
      cmin: the value that becomes `low`; None for the least one.
      cmax: the value that becomes `high`; None for the greatest one.
      mode: the mode of Pillow that the picture is converted to.
      channel_axis: the axis of the channels; None to see it by its length, 3 or 4.

    Returns:
      The picture.
    """
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
    """`scipy.misc.bytescale`: the values as bytes, scaled from `cmin` to `cmax`.

    Args:
      data: the array; bytes stay as they are.
      cmin: the value that becomes `low`; None for the least one.
      cmax: the value that becomes `high`; None for the greatest one.
      high: the byte of `cmax`.
      low: the byte of `cmin`.

    Returns:
      An array of bytes.
    """
    if data.dtype == np.uint8:
        return data
    least = float(data.min()) if cmin is None else cmin
    most = float(data.max()) if cmax is None else cmax
    scale = (high - low) / ((most - least) or 1.0)
    scaled = (data - least) * scale + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)
