"""A file is replaced when the new one is whole; a failed write leaves nothing."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hookbridge.adapters.live_model import weight_files
from hookbridge.adapters.session_graph.saved import SavedArray
from hookbridge.adapters.state import storage


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """No file of this process may grow beyond 1,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def state(path: str, size: int) -> None:
    storage.write(path, b"x" * size)


def weights(path: str, size: int) -> None:
    entry = SavedArray("layer/kernel", "", "layer/kernel")
    weight_files.save(path, {entry: np.ones([size], np.uint8)}, h5=True)


@pytest.mark.parametrize("write", [state, weights])
def test_a_write_that_fails(write: Callable[[str, int], None], tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    write(str(path), 10)
    old = path.read_bytes()
    with small_files(), pytest.raises(OSError, match=r"write the file.*file\.h5"):
        write(str(path), 100_000)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["file.h5"]
