"""A better error for `tf.estimator` where TensorFlow has none (2.16 and later).

Nothing but the text of that error changes: `hasattr(tf, "estimator")` stays False.
"""

from __future__ import annotations

import functools
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from hookbridge.pages import pointer
from hookbridge.patching import InstanceMethods

_WAY_OUT = (
    "TensorFlow 2.16 and later have no Estimator. `hb.estimator.install()` puts it "
    "there, and `hookbridge run PROGRAM.py` runs a program of TensorFlow 1 with it, "
    f"unedited. {pointer('estimator')}"
)


def tell_of_estimator_once_there() -> None:
    """Calls `tell_of_estimator` now, or when TensorFlow is imported later."""
    if "tensorflow" in sys.modules:
        tell_of_estimator(sys.modules["tensorflow"])
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


class _Waiting(importlib.abc.MetaPathFinder):
    """Waits until TensorFlow is imported, then removes itself; finds nothing itself.

    The other finders give the module and its loader. A program that only asks whether
    TensorFlow is installed imports nothing, and gets the usual answer.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != "tensorflow":
            return None
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    self._follow(spec.loader)
                    return spec
        return None

    def _follow(self, loader: Any) -> None:
        """Makes a loader call `tell_of_estimator` after it has run the module."""
        if not hasattr(loader, "exec_module"):
            return

        def exec_module(module: ModuleType) -> None:
            methods.remove()
            loader.exec_module(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            tell_of_estimator(sys.modules.get("tensorflow", module))

        methods = InstanceMethods(loader, {"exec_module": exec_module})
        methods.install()


def tell_of_estimator(tf: ModuleType) -> None:
    """Gives the modules `tf` and `tf.compat.v1` a better error; once is enough."""
    namespaces = (tf, getattr(getattr(tf, "compat", None), "v1", None))
    for module in namespaces:
        if module is None or "estimator" in vars(module):
            continue  # it already has Estimator, or a lazy loader for it
        module = getattr(module, "_tfmw_wrapped_module", module)
        before = vars(module).get("__getattr__")
        if not isinstance(before, functools.partial):
            explain = functools.partial(_explain, module, before)
            InstanceMethods(module, {"__getattr__": explain}).install()


def _explain(module: ModuleType, before: Any, name: str) -> Any:
    """The `__getattr__` of a module: Python calls it for a missing attribute."""
    if before is not None and name != "estimator":
        return before(name)
    text = f"module {module.__name__!r} has no attribute {name!r}"
    if name == "estimator":
        text = f"{text}: {_WAY_OUT}"
    raise AttributeError(text, name=name, obj=module)
