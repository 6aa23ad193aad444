"""Stand-ins for TensorFlow modules that changed or went after 2.15.

`STAND_INS` is the whole list. A module that the package can use unchanged is never
replaced: a test for each row shows that it is still needed.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.estimator import exports
from hookbridge.ground import compat


class StandIn(NamedTuple):
    """What the package gets in place of a module, and why.

    `missing` has the attributes that TensorFlow no longer has in a module that is not
    gone.
    """

    make: Callable[[str], types.ModuleType]
    why: str
    missing: tuple[str, ...] = ()
    is_removed: bool = True


def moved_message(name: str) -> str:
    """Return the message for a private name that is not where it is expected."""
    version = ".".join(map(str, compat.tf_version()))
    return (
        f"tensorflow-estimator needs `{name}`, which TensorFlow {version} does not "
        "have under this name. Use a TensorFlow version listed in docs/estimator.md, "
        "or report this version."
    )


def _ours(name: str) -> types.ModuleType:
    """Return the module of this folder that takes the place of `name`."""
    return importlib.import_module(f"hookbridge.estimator.{name.rpartition('.')[2]}")


def _refusing(name: str) -> types.ModuleType:
    """Return a module that has every public name; each one refuses to be used.

    The TPU part of the package is imported with the rest of the package. It reads
    these names when its classes are made, and calls them only when a TPU is used.
    """
    module = types.ModuleType(
        name, "Removed from TensorFlow; raises an error when used."
    )

    def make(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
            raise errors.RefusedError(
                f"`{name}.{attribute}` was removed from TensorFlow in 2.16 with "
                "`tf.estimator`; TPU embeddings, TPU sessions and `TPUEstimator` on "
                "a TPU do not run on this version. Use TensorFlow 2.15 for it, or "
                "`tf.distribute.TPUStrategy` with `Model.fit`. `TPUEstimator` with "
                "`use_tpu=False` works.",
                see="estimator",
            )

        value = type(attribute, (), {"__init__": refuse, "__module__": name})
        setattr(module, attribute, value)
        return value

    module.__getattr__ = make  # type: ignore[method-assign]
    return module


STAND_INS: dict[str, StandIn] = {
    "tensorflow.python.distribute.estimator_training": StandIn(
        _ours, "strategies over several workers in Estimator: module removed"
    ),
    **{
        f"tensorflow.python.tpu.{name}": StandIn(_refusing, "module removed")
        for name in ("session_support", "tpu_embedding", "tpu_embedding_gradient")
    },
    "tensorflow.python.util.tf_export": StandIn(
        lambda _: exports.tf_export(),
        "the API name `estimator` and its attribute tables were removed",
        ("ESTIMATOR_API_NAME",),
        is_removed=False,
    ),
    "tensorflow.python.util.deprecation": StandIn(
        lambda _: exports.deprecation(),
        "the package marks TensorFlow's own hook classes as deprecated in place; "
        "they are not, and TensorFlow is not to be changed",
        (),
        is_removed=False,
    ),
}


@functools.cache
def load(name: str) -> types.ModuleType:
    """Return the stand-in for the module `name`."""
    return STAND_INS[name].make(name)
