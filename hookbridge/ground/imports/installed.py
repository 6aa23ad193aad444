"""Which TensorFlow is installed, from the metadata of packages; nothing is imported."""

from __future__ import annotations

import re
from importlib import metadata

# Distributions that hold the package `tensorflow`.
TENSORFLOWS = (
    "tensorflow",
    "tensorflow-cpu",
    "tf-nightly",
    "tensorflow-intel",
    "tensorflow-macos",
    "tensorflow-rocm",
    "tf-nightly-cpu",
    "intel-tensorflow",
)

# The packages of Keras whose guests and models may be in one process.
KERAS = ("keras", "tf_keras")


def tensorflow() -> tuple[int, int] | None:
    """Return the installed TensorFlow's `(major, minor)`, or None if there is none."""
    for name in TENSORFLOWS:
        try:
            return major_minor(metadata.version(name))
        except metadata.PackageNotFoundError:
            continue
    return None


def major_minor(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)
