"""Standard streams that are closed, as by `>&-`, or lack letters of a text."""

from __future__ import annotations

import os
import sys

from hookbridge.ground.patching import assign


def open_closed() -> None:
    """Open closed standard streams on the null device.

    Otherwise the next file or socket would get their numbers, and what is printed
    would end the command, or get into that file.
    """
    streams = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
    # A new file gets the lowest number that is free.
    while (null := os.open(os.devnull, os.O_RDWR)) < len(streams):
        os.set_inheritable(null, True)
        name, mode = streams[null]
        if getattr(sys, name) is None:
            assign(sys, **{name: os.fdopen(null, mode, closefd=False)})
    os.close(null)


def escape_unknown() -> None:
    """Let the streams print `\\u2192` for a letter that their encoding lacks.

    The names and the code that are printed are the user's, in any language.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
