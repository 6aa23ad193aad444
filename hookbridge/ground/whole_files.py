"""Files that are either the old ones or the new ones, whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str, part: str) -> Iterator[None]:
    """Rename the file `part`, which the block writes, to `path`.

    Nothing is left of a write that fails, and its error names the file.
    """
    try:
        yield
        os.replace(part, path)
    except BaseException as e:
        with contextlib.suppress(OSError):
            os.unlink(part)
        if isinstance(e, OSError) and e.filename is None:
            # The texts of h5py have addresses and line breaks in them.
            reason = os.strerror(e.errno) if e.errno else " ".join(str(e).split())
            raise OSError(e.errno, f"cannot write the file: {reason}", path) from e
        raise
