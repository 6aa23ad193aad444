"""Where the code of a program is: its main file, and the folders of its modules."""

from __future__ import annotations

import importlib.util
import os
import site
import sys
import sysconfig
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

from hookbridge import errors
from hookbridge.run.launch import Launch

# Installed code that was written for TensorFlow 1 and runs on no TensorFlow 2, also not
# on 2.15: its imports are answered like the program's. Part of the path -> what it is.
OLD_LIBRARIES = {
    "tf_slim": "what stands behind tf.contrib",
    "traceml/integrations/tensorflow.py": "Polyaxon's hook",
    "polyaxon/tracking/contrib/tensorflow.py": "Polyaxon's hook, in older versions",
}
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True)
class Located:
    """Where a program was found.

    Attributes:
      file: its main file, as `__file__` of `__main__` shows it.
      folder: what Python puts first into `sys.path` for it.
      argv0: what Python puts into `sys.argv[0]`.
      spec: how it was found, for a module; None for a file.
    """

    file: str
    folder: str
    argv0: str
    spec: ModuleSpec | None = None


def locate(launch: Launch) -> Located:
    """Finds the main file.

    Raises:
      errors.InvalidArgumentError: there is none, or it is no Python source.
    """
    return _module(launch.program) if launch.as_module else _file(launch.program)


def _file(path: str) -> Located:
    file = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    if not os.path.isfile(file):
        raise errors.InvalidArgumentError(
            f"Received the program {path!r}, which does not exist; expected a Python "
            "file, or `-m` and the name of a module."
        )
    # As in Python: a link to a file is followed, a link to a folder is not.
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.realpath(file))
    return Located(file, os.path.abspath(folder), path)


def _module(name: str) -> Located:
    found: ModuleSpec | None = None
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            name = f"{name}.__main__"
            found = importlib.util.find_spec(name)
    except (ImportError, ValueError) as e:
        raise errors.InvalidArgumentError(
            f"Received the module {name!r}, which cannot be found: {e}."
        ) from e
    if found is None or not (found.origin or "").endswith(".py"):
        raise errors.InvalidArgumentError(
            f"Received the module {name!r}; expected one that Python finds and whose "
            "source is there."
        )
    assert found.origin is not None
    return Located(found.origin, os.getcwd(), found.origin, found)


class OwnCode:
    """Tells the program's own files from those of installed packages.

    Args:
      folder: the program's folder.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        known = sysconfig.get_paths()
        places = [known[name] for name in ("stdlib", "platstdlib", "purelib")]
        places += [known["platlib"], site.getusersitepackages(), HERE]
        places.append(os.path.join(HERE, "adapters"))  # a link, in a checkout
        self._installed = tuple({os.path.realpath(p) + os.sep for p in places})
        self._folders: dict[str, bool] = {}

    def __contains__(self, file: str) -> bool:
        if self.is_old_library(file):
            return True
        # TensorFlow imports thousands of modules, and this is asked for each of them:
        # the answer is kept for each folder.
        folder = os.path.dirname(
            os.path.realpath(file) if os.path.islink(file) else file
        )
        if folder not in self._folders:
            self._folders[folder] = self._is_own(os.path.realpath(folder))
        return self._folders[folder]

    def _is_own(self, folder: str) -> bool:
        parts = Path(folder).parts
        if "site-packages" in parts or "dist-packages" in parts:
            return False
        return not (folder + os.sep).startswith(self._installed)

    @staticmethod
    def is_old_library(file: str) -> bool:
        """Whether it is one of `OLD_LIBRARIES`."""
        path = file.replace(os.sep, "/")
        return any(f"/{part}" in path for part in OLD_LIBRARIES)

    def is_inside(self, file: str) -> bool:
        """Whether a file is in the program's folder."""
        return os.path.realpath(file).startswith(self.folder + os.sep)

    def roots(self) -> list[str]:
        """Folders in which the program's own modules are looked for."""
        others = [path for path in sys.path if path and os.path.isdir(path)]
        return [self.folder, *(p for p in others if os.path.join(p, "_.py") in self)]
