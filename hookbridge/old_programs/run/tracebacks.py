"""An error of a program looks as if Python itself had run it."""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Iterator

from hookbridge import contrib, legacy
from hookbridge.old_programs.run.restored import restored_arguments

# The files of this room, and of what programs get.
_ROOMS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(file)), "")
    for file in (__file__, contrib.__file__, legacy.__file__)
)


@contextlib.contextmanager
def of_program_only(folders: tuple[str, ...] = ()) -> Iterator[None]:
    """Show an uncaught error without the frames of this room, `contrib` and `legacy`.

    Frames of code in `folders` are left out, too. The error then passes on, so that
    Python ends the process as it always does; it is not shown a second time.
    """
    try:
        yield
    except SystemExit:
        raise
    except BaseException as e:
        _trim(e, _ROOMS + folders, set())
        sys.last_type, sys.last_value = type(e), e
        sys.last_traceback = e.__traceback__
        sys.excepthook(type(e), e, e.__traceback__)
        if way_out := restored_arguments.way_out(e):
            print(f"hookbridge run: {way_out}", file=sys.stderr)
        sys.excepthook = lambda *error: None
        raise


def _trim(error: BaseException, folders: tuple[str, ...], visited: set[int]) -> None:
    """Take code in folders out of the traceback of an error and of its causes."""
    if id(error) in visited:
        return
    visited.add(id(error))
    error.__traceback__ = _without(error.__traceback__, folders)
    for origin in (error.__cause__, error.__context__):
        if origin is not None:
            _trim(origin, folders, visited)


def _without(
    entry: types.TracebackType | None, folders: tuple[str, ...]
) -> types.TracebackType | None:
    """Return a traceback without the entries of files in some folders."""
    shown = []
    while entry is not None:
        if not os.path.abspath(entry.tb_frame.f_code.co_filename).startswith(folders):
            shown.append(entry)
        entry = entry.tb_next
    following = None
    for entry in reversed(shown):
        entry.tb_next = following
        following = entry
    return following
