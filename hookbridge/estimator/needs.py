"""The private TensorFlow names that the Estimator package reads.

The package imports some of them when it is imported, and reads the others when a
feature is used. Its last release is years old, and newer TensorFlows may move names.
So `check` looks all of them up before the package is imported: one error lists every
name that this TensorFlow does not have. A test compares the table with the package's
source; `python tests/estimator/estimator_package_scan.py` prints it.
"""

from __future__ import annotations

import pkgutil

from hookbridge.estimator import stand_ins
from hookbridge.ground import compat
from hookbridge.ground.imports.package_files import packaged

# A module (or class), and the names read from it, without those of a stand-in and
# without modules that have a line of their own.
TABLE = packaged("hookbridge.estimator", "needs.txt")
NEEDS = dict(line.split(": ", 1) for line in TABLE.read_text("utf-8").splitlines())


def check() -> None:
    """Raise an error that lists the names that this TensorFlow lacks, if any."""
    lacking = []
    for module, names in NEEDS.items():
        for path in (f"{module}.{name}" for name in names.split()):
            try:
                pkgutil.resolve_name(path)
            except (ImportError, AttributeError):
                lacking.append(path)
    if lacking:
        raise compat.PrivateNameMovedError(
            stand_ins.moved_message("`, `".join(lacking))
        )
