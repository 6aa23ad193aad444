"""`hookbridge --version`: what a report of a fault needs to say."""

from __future__ import annotations

import platform
from importlib import metadata

import hookbridge

PACKAGES = (
    "tensorflow",
    "keras",
    "tf_keras",
    "tensorflow-estimator",
    "numpy",
    "absl-py",
)


def versions() -> dict[str, str]:
    """`{name: version}` of hookbridge, Python, the platform and what is installed.

    Nothing is imported for it: TensorFlow may be what does not work.
    """
    found = {
        "hookbridge": hookbridge.__version__,
        "Python": platform.python_version(),
        "platform": platform.platform(),
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def text() -> str:
    """The versions, one in a line."""
    return "\n".join(f"{name} {version}" for name, version in versions().items())
