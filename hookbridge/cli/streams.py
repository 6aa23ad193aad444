"""Standard streams that were closed before the command began, as by `>&-`."""

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
