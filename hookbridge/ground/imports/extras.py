"""Optional packages: each comes with an extra, or with a command of its own."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from hookbridge import errors
from hookbridge.ground.imports import installed

# Its name on the package index, where `hookbridge` is another project.
DISTRIBUTION = "tf-hookbridge"
# Module -> its distribution, and the extra that brings it.
MODULES = {
    "IPython": ("IPython", "notebooks"),
    # Python lost it in 3.12; TensorFlow brings setuptools up to 2.21.
    "distutils": ("setuptools", "distutils"),
    "tensorboard": ("tensorboard", "tensorboard"),
    "tensorflow": ("TensorFlow", "tensorflow"),
    "tensorflow_estimator": ("tensorflow-estimator", "estimator"),
    "tf_slim": ("tf_slim", "contrib"),
    "yaml": ("PyYAML", "cluster"),
}
# The newest tf_keras, (major, minor). Each one requires the TensorFlow of its number.
# The newest one works with TensorFlow 2.22 and 2.23 too.
NEWEST_TF_KERAS = (2, 21)


def install(extra: str) -> str:
    """Return the command that installs an extra; the quotes protect `[` from the shell.

    It is right wherever hookbridge was installed from: pip keeps an installed package.
    """
    return f'`pip install "{DISTRIBUTION}[{extra}]"`'


def install_tf_keras() -> str:
    """Return the command that installs tf_keras, and no other TensorFlow than there is.

    No extra can ask for the tf_keras of the TensorFlow that is installed: pip would
    take the newest one, and replace TensorFlow by the one that it requires.
    """
    version = installed.tensorflow()
    if version is None:
        return install("tensorflow")
    major, minor = min(version, NEWEST_TF_KERAS)
    return f'`pip install --no-deps "tf_keras=={major}.{minor}.*"`'


def is_installed(module: str) -> bool:
    """Return whether a module could be imported; it is not."""
    return importlib.util.find_spec(module) is not None


def check(*modules: str, user: str, way_out: str = "") -> None:
    """Check that all modules are installed, without importing them.

    The message names all that are missing, with the commands that bring them.

    Args:
      *modules: their names, which are keys of `MODULES`.
      user: what needs them: the start of the message.
      way_out: the end of the message.

    Raises:
      errors.MissingExtraError: one is not installed.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        message = f"{user} needs {absent(missing)} {way_out}"
        raise errors.MissingExtraError(message.rstrip())


def absent(modules: Sequence[str]) -> str:
    """Return that modules are not installed, and the commands that install them."""
    names, commands = [], []
    for module in modules:
        if module == "tf_keras":
            names.append(module)
            commands.append(install_tf_keras())
        else:
            distribution, extra = MODULES[module]
            names.append(distribution)
            commands.append(install(extra))
    verb, pronoun = ("are", "them") if len(names) > 1 else ("is", "it")
    return (
        f"{' and '.join(names)}, which {verb} not installed. Install {pronoun} with "
        f"{' and '.join(dict.fromkeys(commands))}."
    )


def load(module: str, user: str, *, way_out: str = "") -> Any:
    """Import a module that comes with an extra.

    Args:
      module: its name, a key of `MODULES`.
      user: what needs it: the start of the message.
      way_out: the end of the message.

    Raises:
      errors.MissingExtraError: it is not installed.
    """
    check(module, user=user, way_out=way_out)
    return importlib.import_module(module)
