"""Arrays in an `.npz` file: without pickle, and never larger than the file."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def to_bytes(arrays: Mapping[str, Any]) -> bytes:
    """An `.npz` file of arrays, not compressed."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def from_bytes(data: bytes, keys: Iterable[str]) -> dict[str, Any]:
    """Reads arrays of an `.npz` file that `to_bytes` made.

    A file from elsewhere may claim false sizes: together, the arrays that are read are
    never larger than the file. `ValueError`: `to_bytes` makes no such file.
    """
    found, left = {}, len(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for key in keys:
            member = archive.getinfo(f"{key}.npy")
            left -= member.file_size
            if member.compress_type != zipfile.ZIP_STORED or left < 0:
                raise ValueError(f"the array {key} is larger than its file")
            found[key] = _array(archive.read(member))
    return found


def _array(data: bytes) -> Any:
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    read_header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read_header(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of {dtype} of shape {shape} has {len(data)} bytes")
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
