"""Files that a wheel has beside its modules, and a checkout in folders of its own."""

from __future__ import annotations

from pathlib import Path

_TOP = Path(__file__).parents[2]


def find(beside: Path, in_checkout: str) -> Path:
    """The file or folder in the package, or else the one of the checkout.

    `setup.py` copies the one of the checkout into a wheel, as `beside`.
    """
    return beside if beside.exists() else _TOP / in_checkout
