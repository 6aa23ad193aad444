"""The private TensorFlow names that the Estimator package reads.

The package imports some of them when it is imported, and reads the others when a
feature is used. Its last release is years old, and newer TensorFlows may move names.
So `check` looks all of them up before the package is imported: one error lists every
name that this TensorFlow does not have. A test compares the table with the package's
source; `python tests/estimator/estimator_package_scan.py` prints it.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path

from hookbridge import compat
from hookbridge.estimator import stand_ins

# A module (or class), and the names read from it, without those of a stand-in and
# without modules that have a line of their own.
TABLE = Path(__file__).with_name("needs.txt")
NEEDS = dict(line.split(": ", 1) for line in TABLE.read_text("utf-8").splitlines())


def missing() -> list[str]:
    """The names of `NEEDS` that the running TensorFlow does not have."""
    paths = [f"{place}.{name}" for place in NEEDS for name in NEEDS[place].split()]
    return [path for path in paths if not _exists(path)]


def _exists(path: str) -> bool:
    try:
        pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return False
    return True


def check() -> None:
    """Raises an error that lists all missing names, if there are some."""
    lost = missing()
    if lost:
        raise compat.PrivateNameMovedError(stand_ins.moved("`, `".join(lost)))
