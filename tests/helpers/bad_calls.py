"""Calls with bad arguments, in the tables of the tests that expect their errors."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookbridge.ground import compat


def keras2() -> Any:
    """The Keras 2 of this environment."""
    return importlib.import_module(
        "tf_keras" if compat.tf_version() > (2, 15) else "keras"
    )


def model() -> Any:
    """A built model, not compiled."""
    made = keras2().Sequential([keras2().layers.Dense(1)])
    made.build((None, 2))
    return made


def call(function: Any, *args: Any, **options: Any) -> Callable[[Path], Any]:
    """A call of a table, which does not need the folder that it gets."""
    return lambda _: function(*args, **options)
