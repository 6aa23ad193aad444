"""Classes of layers and models that the making of a graph has switched."""

from __future__ import annotations

import contextlib
import sys

from hookbridge.ground import compat


class EagerClasses:
    """Classes of Keras 2 switched back to what eager models need.

    Making a layer or a model switches the bases of its class, to the version for graphs
    or to that for eager code. After a graph was built, by an Estimator's evaluation for
    example, eager models of the same classes fail: "in an invalid state".
    """

    def __init__(self) -> None:
        self._eager = [
            eager
            for keras in compat.keras_flavours()
            if not compat.is_keras3(keras)
            for eager in (keras.layers.Layer, keras.Model)
        ]

    def switch(self) -> None:
        """Switch back what a graph has switched, as making an eager model would."""
        for eager in self._eager:
            # Keras imports the version for graphs when it first needs it.
            module = sys.modules.get(f"{eager.__module__}_v1")
            if module is None:
                continue
            for switched in getattr(module, eager.__name__).__subclasses__():
                if switched.__module__ != module.__name__:
                    # `__new__` of Keras switches the bases, then makes an object. The
                    # object is not used; abstract classes refuse to make it.
                    with compat.private("eager_mode")(), contextlib.suppress(TypeError):
                        eager.__new__(switched)
