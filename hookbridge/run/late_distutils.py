"""`distutils`, which Python lost in 3.12: old programs compare versions with it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

NAME = "distutils"


class LateDistutils:
    """Finds the copy in setuptools, where no other finder has `distutils`."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if name != NAME or importlib.util.find_spec("setuptools") is None:
            return None
        importlib.import_module("setuptools")  # puts its copy into `sys.modules`
        found = sys.modules.get(NAME)
        return None if found is None else found.__spec__
