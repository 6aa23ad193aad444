"""What `hookbridge run` was asked to do, as one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """A program, its arguments, and what the user decided about its world.

    The object can be pickled: child processes of the program get it.

    Attributes:
      program: the path of a file, or the name of a module if `as_module`.
      arguments: what the program finds in `sys.argv[1:]`.
      as_module: whether it runs as `python -m` does.
      keras: 2 or 3; None reads it from the source.
      v1: whether TensorFlow behaves as version 1 does; None reads it from the source.
      guests: a file with hooks and callbacks that join every training; None for none.
      old_libraries: installed packages that mean TensorFlow 1; others are asked.
      steps_per_epoch: steps in an epoch of these guests, for loops without epochs.
    """

    program: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    keras: int | None = None
    v1: bool | None = None
    guests: str | None = None
    steps_per_epoch: int | None = None
    old_libraries: tuple[str, ...] = ()
