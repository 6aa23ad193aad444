"""Optional packages: each comes with an extra of `setup.py`."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from hookbridge import errors

# Module -> its distribution, and the extra that brings it.
_EXTRAS = {
    "jsonschema": ("jsonschema", "cluster"),
    "libcst": ("LibCST", "migrate"),
    "tensorboard": ("tensorboard", "tensorboard"),
    "tensorflow_estimator": ("tensorflow-estimator", "estimator"),
    "tf_keras": ("tf_keras", "keras2"),
    "tf_slim": ("tf_slim", "contrib"),
    "yaml": ("PyYAML", "cluster"),
}


def install(extra: str) -> str:
    """The command that installs an extra; the quotes protect `[` from the shell."""
    return f'`pip install "hookbridge[{extra}]"`'


def check(
    module: str, user: str, *, extra: str | None = None, way_out: str = ""
) -> None:
    """Raises unless a module is installed. It is not imported.

    Args:
      module: its name, a key of `_EXTRAS`.
      user: what needs it; the first words of the message.
      extra: the extra with everything that `user` needs; None takes the module's own.
      way_out: other solutions, as whole sentences.

    Raises:
      errors.MissingExtraError: it is not installed.
    """
    if importlib.util.find_spec(module) is None:
        distribution, own = _EXTRAS[module]
        message = (
            f"{user} needs {distribution}, which is not installed. Install it with "
            f"{install(extra or own)}. {way_out}"
        )
        raise errors.MissingExtraError(message.rstrip())


def load(module: str, user: str, *, way_out: str = "") -> Any:
    """Imports a module.

    Args:
      module: its name, a key of `_EXTRAS`.
      user: what needs it; the first words of the message.
      way_out: other solutions, as whole sentences.

    Raises:
      errors.MissingExtraError: it is not installed.
    """
    check(module, user, way_out=way_out)
    return importlib.import_module(module)
