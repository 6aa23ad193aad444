"""Standard streams that are closed, as by `>&-`, or have no letters for a text."""

from __future__ import annotations

import os
import sys

from hookbridge.patching import assign


def open_closed() -> None:
    """Opens closed standard streams on the null device.

    Otherwise the next file or socket would get their numbers, and what is printed
    would end the command, or get into that file.
    """
    for number, name, mode in (
        (0, "stdin", "r"),
        (1, "stdout", "w"),
        (2, "stderr", "w"),
    ):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            if getattr(sys, name) is None:
                assign(sys, **{name: os.fdopen(number, mode, closefd=False)})


def escape_unknown() -> None:
    """Lets the streams print `\\u2192` for a letter that their encoding lacks.

    The names and the code that are printed are the user's, in any language.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
