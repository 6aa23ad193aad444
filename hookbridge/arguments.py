"""Checks a directory that training writes to, before training."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from hookbridge import errors


def check_writable(directory: str | os.PathLike[str], *, name: str) -> str:
    """Creates `directory` and proves that files can be written there.

    Remote file systems (`gs://...`) are left to TensorFlow.

    Args:
      directory: the path.
      name: what the message calls it, such as `model_dir`.

    Returns:
      The path as a string.

    Raises:
      errors.UnwritableError: it cannot be created or written.
    """
    path = os.fspath(directory)
    if "://" in path:
        return path
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise errors.UnwritableError(
            f"Received {name}={path!r}, which cannot be written ({reason}); expected "
            "a directory that exists or can be made. Give another directory, or "
            "permission to write there."
        ) from e
    return path


def check_count(name: str, value: Any) -> None:
    """Raises unless `value` is None or an integer of at least 1.

    Raises:
      errors.InvalidArgumentError: it is not.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise errors.InvalidArgumentError(
            f"Received {name}={value!r}; expected an integer of at least 1."
        )
