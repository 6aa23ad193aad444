"""What `hookbridge run` was asked to do, as one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """A program, its arguments, and what the user decided about its world.

    The object can be pickled: child processes of the program get it.
    """

    program: str  # the path of a file, or the name of a module if `as_module`
    arguments: tuple[str, ...] = ()  # what the program finds in `sys.argv[1:]`
    as_module: bool = False  # whether it runs as `python -m` does
    keras: int | None = None  # 2 or 3; None reads it from the source
    # Whether TensorFlow behaves as version 1 does; None reads it from the source.
    v1: bool | None = None
    # A file with hooks and callbacks that join every training; None for none.
    guests: str | None = None
    # Steps in an epoch of these guests, for loops without epochs.
    steps_per_epoch: int | None = None
    # Installed packages that mean TensorFlow 1; others are asked.
    old_libraries: tuple[str, ...] = ()
