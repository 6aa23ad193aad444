"""Optional packages: each comes with an extra of `setup.py`."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from hookbridge import errors

# Its name on the package index, where `hookbridge` is another project.
DISTRIBUTION = "tf-hookbridge"
# Module -> its distribution, and the extra that brings it.
MODULES = {
    "IPython": ("IPython", "notebooks"),
    "tensorboard": ("tensorboard", "tensorboard"),
    "tensorflow": ("TensorFlow", "tensorflow"),
    "tensorflow_estimator": ("tensorflow-estimator", "estimator"),
    "tf_keras": ("tf_keras", "keras2"),
    "tf_slim": ("tf_slim", "contrib"),
    "yaml": ("PyYAML", "cluster"),
}


def install(extra: str) -> str:
    """The command that installs an extra; the quotes protect `[` from the shell.

    It is right wherever hookbridge was installed from: pip keeps an installed package.
    """
    return f'`pip install "{DISTRIBUTION}[{extra}]"`'


def check(
    module: str, user: str, *, extra: str | None = None, way_out: str = ""
) -> None:
    """Raises unless a module is installed, which is not imported.

    The message begins with `user` and ends with `way_out`. It names `extra`, or else
    the module's own extra.
    """
    if importlib.util.find_spec(module) is None:
        distribution, own = MODULES[module]
        message = (
            f"{user} needs {distribution}, which is not installed. Install it with "
            f"{install(extra or own)}. {way_out}"
        )
        raise errors.MissingExtraError(message.rstrip())


def load(module: str, user: str, *, way_out: str = "") -> Any:
    """Imports a module; see `check`."""
    check(module, user, way_out=way_out)
    return importlib.import_module(module)
