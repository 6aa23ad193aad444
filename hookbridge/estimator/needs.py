"""The private TensorFlow names that the Estimator package reads.

The package imports some of them when it is imported, and reads the others when a
feature is used. Its last release is years old, and newer TensorFlows may move names.
So `check` looks all of them up before the package is imported: one error lists every
name that this TensorFlow does not have. A test compares the table with the package's
source; `python tests/estimator/estimator_package_scan.py` prints it.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from hookbridge import compat
from hookbridge.estimator import stand_ins

# A module (or class), and the names read from it, without those of a stand-in and
# without modules that have a line of their own.
TABLE = Path(__file__).with_name("needs.txt")
NEEDS = dict(line.split(": ", 1) for line in TABLE.read_text("utf-8").splitlines())


def _find(path: str) -> Any:
    """A module, or an attribute of one, by its dotted path.

    Raises:
      LookupError: there is no such thing.
    """
    try:
        return importlib.import_module(path)
    except ImportError:
        parent, _, name = path.rpartition(".")
        if not parent:
            raise LookupError(path) from None
    try:
        return getattr(_find(parent), name)
    except AttributeError:
        raise LookupError(path) from None


def missing() -> list[str]:
    """The names of `NEEDS` that the running TensorFlow does not have."""
    lost = []
    for module, names in NEEDS.items():
        for name in names.split():
            try:
                _find(f"{module}.{name}")
            except LookupError:
                lost.append(f"{module}.{name}")
    return lost


def check() -> None:
    """Makes sure that the package finds all of TensorFlow that it needs.

    Raises:
      compat.PrivateNameMovedError: some names are missing; the message lists them.
    """
    lost = missing()
    if lost:
        raise compat.PrivateNameMovedError(stand_ins.moved("`, `".join(lost)))
