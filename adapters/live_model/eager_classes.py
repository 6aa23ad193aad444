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

# (Keras module, the end of a module's name) -> the version for graphs, once loaded.
_graph_versions: dict[tuple[Any, str], Any] = {}


def switch() -> None:
    """Switches what was made in a graph back, as making an eager model would."""
    for keras in compat.keras_flavours():
        if not compat.is_keras3(keras):
            _switch(keras, keras.layers.Layer, "base_layer_v1")
            _switch(keras, keras.Model, "training_v1")


def _switch(keras: Any, eager_version: Any, module: str) -> None:
    version = _graph_versions.get((keras, module))
    if version is None:
        for each in eager_version.__subclasses__():
            if each.__module__.endswith(module):
                version = _graph_versions[keras, module] = each
                break
        else:
            return  # no graph was built with this Keras
    for switched in version.__subclasses__():
        if switched.__module__ != version.__module__:
            # This method of Keras does it, and then fails for an abstract class.
            with compat.private("eager_mode")(), contextlib.suppress(TypeError):
                eager_version.__new__(switched)
