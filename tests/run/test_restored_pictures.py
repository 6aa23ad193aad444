"""Functions of pictures that SciPy, Pillow and Matplotlib removed act as they did."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import as_own_file

import hookbridge as hb
from hookbridge.legacy import picture_methods


def test_pictures_are_read_written_and_scaled(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5
    file = tmp_path / "picture.png"
    hb.legacy.imsave(str(file), picture)
    assert (hb.legacy.imread(str(file)) == picture).all()
    assert hb.legacy.imread(str(file), flatten=True).shape == (4, 4)
    assert hb.legacy.imresize(picture, (2, 8)).shape == (2, 8, 3)
    assert hb.legacy.imresize(picture, 50).shape == (2, 2, 3)
    assert hb.legacy.imresize(picture, 2.0).shape == (8, 8, 3)
    hb.legacy.imsave(str(file), np.linspace(-1.0, 1.0, 4).reshape(2, 2))
    assert hb.legacy.imread(str(file)).tolist() == [[0, 85], [170, 255]]


def test_arrays_become_pictures_of_the_bytes_that_scipy_made() -> None:
    """The numbers are those of SciPy 1.1."""
    pytest.importorskip("PIL")
    values = np.array([[-1.0, 0.0], [1.0, 3.0]])
    picture = hb.legacy.toimage(values, cmin=-1.0, cmax=1.0)
    assert (picture.mode, np.asarray(picture).tolist()) == ("L", [[0, 128], [255, 255]])
    channels_first = np.zeros((3, 2, 5), np.uint8)
    assert hb.legacy.toimage(channels_first).size == (5, 2)
    with pytest.raises(ValueError, match=r"mode='L' has not 3 channels.*RGB, YCbCr"):
        hb.legacy.toimage(channels_first, mode="L")
    with pytest.raises(ValueError, match="three axes"):
        hb.legacy.toimage(np.zeros((2, 5, 1)))
    scaled = hb.legacy.bytescale(values, high=10, low=2)
    assert scaled.tolist() == [[2, 4], [6, 10]]


def test_a_mode_says_what_the_values_are_as_in_scipy() -> None:
    """The numbers are those of SciPy 1.1 with Pillow 9.5."""
    pytest.importorskip("PIL")
    values = np.arange(16.0).reshape(4, 4)
    floats = hb.legacy.imresize(values, (2, 2), mode="F")
    assert floats.dtype == np.float32
    np.testing.assert_allclose(
        floats, [[3.5714288, 5.142857], [9.857143, 11.428572]], rtol=1e-5
    )
    for mode in (None, "L"):
        resized = hb.legacy.imresize(values, (2, 2), mode=mode)
        assert resized.tolist() == [[61, 88], [167, 194]]
    with_palette = hb.legacy.imresize(values, (2, 2), mode="P")
    assert with_palette.tolist() == [[[85] * 3, [119] * 3], [[221] * 3, [255] * 3]]
    channels_first = hb.legacy.imresize(np.arange(48).reshape(3, 4, 4), (2, 2))
    assert channels_first[0].tolist() == [[20, 107, 193], [28, 115, 202]]
    ints = hb.legacy.toimage(values, mode="I")
    assert (ints.mode, int(np.asarray(ints).sum())) == ("I", 2040)
    colours = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    picture = hb.legacy.toimage(colours, mode="YCbCr")
    assert (picture.mode, np.asarray(picture).tolist()) == ("YCbCr", colours.tolist())


def test_texts_have_the_sizes_of_pillow_9() -> None:
    """The numbers are those of Pillow 9.5."""
    pytest.importorskip("PIL")
    from PIL import Image, ImageDraw, ImageFont

    load = getattr(ImageFont, "load_default_imagefont", ImageFont.load_default)
    names = as_own_file(
        "from PIL import Image\n"
        "sizes = font.getsize('Hello'), draw.textsize('one\\nmore', font)\n"
        "filter = Image.ANTIALIAS\n",
        font=load(),
        draw=ImageDraw.Draw(Image.new("RGB", (200, 80))),
    )
    assert names["sizes"] == ((30, 11), (24, 26)) and names["filter"] == 1


def test_the_pixels_and_the_title_of_a_canvas_come_back() -> None:
    class Canvas:
        def buffer_rgba(self) -> np.ndarray[Any, Any]:
            return np.arange(8, dtype=np.uint8).reshape(1, 2, 4)

    assert picture_methods.tostring_rgb(Canvas()) == bytes([0, 1, 2, 4, 5, 6])
    said: list[str] = []
    window = types.SimpleNamespace(set_window_title=said.append)
    for manager in (None, window):
        canvas = types.SimpleNamespace(manager=manager)
        picture_methods.set_window_title(canvas, "a")
    assert said == ["a"]
