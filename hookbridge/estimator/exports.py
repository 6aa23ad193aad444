"""The package's export decorator, without a change to TensorFlow.

`estimator_export` marks the decorated object as deprecated and stores its API names
on it. The package decorates TensorFlow's hook classes as well, so on 2.15 using
`tf.estimator` changes `tf.compat.v1.train.SessionRunHook` for the whole process.
Here only the package's own objects are marked and get names.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from hookbridge.estimator.facade import Facade
from hookbridge.ground import compat

API_NAME = "estimator"


def _is_tensorflows(symbol: object) -> bool:
    module = getattr(symbol, "__module__", None) or ""
    return module.partition(".")[0] == "tensorflow"


def deprecation() -> types.ModuleType:
    """Return `deprecation` of TensorFlow that marks none of its objects."""
    real = compat.private("deprecation")

    def deprecated(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        decorate = real.deprecated(*args, **kwargs)
        return lambda symbol: symbol if _is_tensorflows(symbol) else decorate(symbol)

    return Facade(real, {"deprecated": lambda: deprecated})


@functools.cache
def _api_export() -> type:
    """Return the base class of `estimator_export`."""
    real = compat.private("tf_export")
    unwrap = compat.private("tf_decorator").unwrap

    class ApiExport(real.api_export):  # type: ignore[misc, name-defined]
        """Stores the names of `tf.estimator` symbols on the symbols."""

        def __call__(self, symbol: object) -> Any:
            plain = unwrap(symbol)[1]
            if not _is_tensorflows(plain):
                self.set_attr(plain, "_estimator_api_names", self._names)
                self.set_attr(plain, "_estimator_api_names_v1", self._names_v1)
            return symbol

        def export_constant(self, module_name: str, name: str) -> None:
            """Do nothing: only the build of the package used exported constants."""

    return ApiExport


def tf_export() -> types.ModuleType:
    """Return `tf_export` of TensorFlow that knows the API name `estimator`."""
    return Facade(
        compat.private("tf_export"),
        {"ESTIMATOR_API_NAME": lambda: API_NAME, "api_export": _api_export},
    )
