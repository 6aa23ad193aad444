"""Classes of Keras 2 switched back to what eager models need.

Keras 2 has two versions of `Layer` and `Model`. Making a layer or a model switches the
bases of its class to the version for graphs or to that for eager code. After a graph
was built, an Estimator's evaluation for example, eager models of the same classes fail:
"Your Layer or Model is in an invalid state".
"""

from __future__ import annotations

import contextlib
from typing import Any

from hookbridge import compat


class EagerClasses:
    """The classes of the Keras 2 modules that are imported."""

    def __init__(self) -> None:
        self._versions = [
            versions
            for keras in compat.keras_flavours()
            if not compat.is_keras3(keras)
            for versions in (
                _Versions(keras.layers.Layer, "base_layer_v1"),
                _Versions(keras.Model, "training_v1"),
            )
        ]

    def switch(self, *, quickly: bool = False) -> None:
        """Switches back what a graph has switched, as making an eager model would."""
        for versions in self._versions:
            versions.switch(quickly)


class _Versions:
    """The two versions of one class."""

    def __init__(self, eager: Any, module: str) -> None:
        self._eager = eager
        self._module = module
        self._graph: Any = None

    def switch(self, quickly: bool) -> None:
        if self._graph is None and (quickly or not self._find()):
            return
        for switched in self._graph.__subclasses__():
            if switched.__module__ != self._graph.__module__:
                # `__new__` of Keras switches the bases, then makes an object. The
                # object is not used; abstract classes refuse to make it.
                with compat.private("eager_mode")(), contextlib.suppress(TypeError):
                    self._eager.__new__(switched)

    def _find(self) -> bool:
        """Looks for the version for graphs: Keras imports it when it first needs it."""
        for each in self._eager.__subclasses__():
            if each.__module__.endswith(self._module):
                self._graph = each
        return self._graph is not None
