"""`hookbridge --version`: what a report of a fault needs to say."""

from __future__ import annotations

import hookbridge
from hookbridge import compat


def text() -> str:
    """The versions, one in a line; TensorFlow is not imported for it."""
    found = {"hookbridge": hookbridge.__version__, **compat.installed_versions()}
    return "\n".join(f"{name} {version}" for name, version in found.items())
