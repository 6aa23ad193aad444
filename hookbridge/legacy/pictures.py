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
            picture = _without_palette(picture)
        return _pixels(picture.convert("F") if flatten else picture)


def _without_palette(picture: Any) -> Any:
    return picture.convert("RGBA" if "transparency" in picture.info else "RGB")


def _pixels(picture: Any) -> Any:
    """Return the array of a picture; of one with black and white alone, bytes."""
    return np.array(picture.convert("L") if picture.mode == "1" else picture)


def imsave(name: object, arr: object, format: str | None = None) -> None:
    """`scipy.misc.imsave`: scales the values to 0..255 and writes a picture.

    Args:
      name: the file, open or by name.
      arr: the array; bytes are not scaled.
      format: a format of Pillow, such as "png"; None for that of the name.
    """
    toimage(arr, channel_axis=2).save(name, format=format)


def imresize(
    arr: object, size: Any, interp: str = "bilinear", mode: str | None = None
) -> Any:
    """`scipy.misc.imresize`: a picture of another size, as an array.

    Args:
      arr: the array.
      size: an int is a percentage, a float a fraction, and a pair height and width.
      interp: "nearest", "lanczos", "bilinear", "bicubic" or "cubic".
      mode: as `toimage` takes it.

    Returns:
      The array: of floats with the mode "F", of ints with "I", else of bytes.
    """
    picture = toimage(arr, mode=mode)
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
    resized = picture.resize(shape, resample=how[interp])
    return _pixels(_without_palette(resized) if resized.mode == "P" else resized)


def toimage(
    arr: object,
    high: float = 255,
    low: float = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    pal: object = None,
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
      pal: the palette of an array without channels, `[256, 3]`.
      mode: the mode of Pillow that the values are of: "F", "L", "P", "1" or "I"
        without channels, "RGB" or "YCbCr" with three, "RGBA" or "CMYK" with four;
        None to see it by the shape.
      channel_axis: the axis of the channels; None to see it by its length, 3 or 4.

    Returns:
      The picture.

    Raises:
      ValueError: no picture has such a shape, or not in this mode.
    """
    data = np.asarray(arr)
    scale: dict[str, Any] = {"cmin": cmin, "cmax": cmax, "high": high, "low": low}
    if data.ndim == 2:
        return _of_one_channel(data, scale, pal, mode)
    if data.ndim == 3 and channel_axis is None:
        sizes = [data.shape.index(size) for size in (3, 4) if size in data.shape]
        channel_axis = sizes[0] if sizes else None
    count = 0 if channel_axis is None or data.ndim != 3 else data.shape[channel_axis]
    if count not in _MODES:
        raise ValueError(
            f"An array of shape {data.shape} is not a picture: give [height, width], "
            "or three axes, of which the one of the channels has the length 3 or 4."
        )
    mode = _MODES[count][0] if mode is None else mode
    if mode not in _MODES[count]:
        known = ", ".join(_MODES[count])
        raise ValueError(
            f"mode={mode!r} has not {count} channels. Give one of {known}."
        )
    values = np.moveaxis(bytescale(data, **scale), channel_axis or 0, 2)
    size = values.shape[1], values.shape[0]
    return _pillow().frombytes(mode, size, values.tobytes())


# Number of channels -> modes of Pillow, the usual one first.
_MODES = {3: ("RGB", "YCbCr"), 4: ("RGBA", "CMYK")}


def _of_one_channel(
    data: Any, scale: dict[str, Any], palette: Any, mode: str | None
) -> Any:
    """Return the picture of an array `[height, width]`."""
    if mode in (None, "L", "P"):
        values, mode_of_values = bytescale(data, **scale), "L"
    elif mode == "F":
        values, mode_of_values = data.astype(np.float32), "F"
    elif mode == "1":  # SciPy gave Pillow a byte for each bit, too
        values, mode_of_values = data > scale["high"], "1"
    elif mode == "I":
        low, high = scale["low"], scale["high"]
        least = data.min() if scale["cmin"] is None else scale["cmin"]
        most = data.max() if scale["cmax"] is None else scale["cmax"]
        scaled = (data * 1.0 - least) * (high - low) / (most - least) + low
        values, mode_of_values = scaled.astype(np.uint32), "I"
    else:
        raise ValueError(f"mode={mode!r} has channels. Give one of F, L, P, 1, I.")
    size = data.shape[1], data.shape[0]
    picture = _pillow().frombytes(mode_of_values, size, values.tobytes())
    if palette is None and mode == "P":
        palette = np.repeat(np.arange(256), 3)
    if palette is not None and mode_of_values == "L":
        picture.putpalette(np.asarray(palette, np.uint8).tobytes())
    return picture


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
