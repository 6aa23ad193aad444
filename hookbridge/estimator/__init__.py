"""`tf.estimator` on every supported TensorFlow.

    import hookbridge as hb

    estimator = hb.estimator.Estimator(model_fn, model_dir)
    estimator.train(input_fn, hooks=hb.as_hooks([MyHook(), MyCallback()]))

On TensorFlow 2.15 every name here comes from `tf.estimator` itself. TensorFlow 2.16
and later have no Estimator: there, every name comes from the real tensorflow-estimator
2.15.0 package (`pip install "tf-hookbridge[estimator]"`). The package is imported on
first use and TensorFlow is not changed. `hb.estimator.X` is `tf.estimator.X`, or
`tf.compat.v1.estimator.X` if only that exists; `hb.estimator.v1` is all of
`tf.compat.v1.estimator`. `hb.estimator.python.canned.head` and its neighbours are the
package's private modules.

Reading order: `needs` and `restored_package` (how it is imported), `stand_ins`,
`facade`, `places`, `private` and `view` (under which names); `keras_models`, `exports`,
`feeding_threads`, `estimator_training`.
"""

from __future__ import annotations

import pkgutil
from typing import Any

from hookbridge.estimator.keras_models import model_to_estimator
from hookbridge.estimator.places import install
from hookbridge.ground.texts.nearest_names import suggestion

__all__ = ("install", "model_to_estimator", "python", "v1")

# `from hookbridge.estimator import view` asks for the attribute before it imports
# the submodule. It must not import Estimator for that.
_SUBMODULES = frozenset(module.name for module in pkgutil.iter_modules(__path__))


def __getattr__(name: str) -> Any:
    # Python and its tools ask every module for names such as `__wrapped__`.
    if name.startswith("__") or name in _SUBMODULES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from hookbridge.estimator import private, restored_package

    namespaces = restored_package.namespaces()
    if name == "v1":
        return namespaces.v1
    if name == "python":
        return private.python()
    for namespace in (namespaces.v2, namespaces.v1):
        if hasattr(namespace, name):
            return getattr(namespace, name)
    nearest = suggestion(name, {*dir(namespaces.v2), *dir(namespaces.v1)}, limit=1)
    message = (
        f"module `{__name__}` has no attribute `{name}`; neither `tf.estimator` nor "
        f"`tf.compat.v1.estimator` of TensorFlow 2.15 has it{nearest}"
    )
    if name.startswith("BoostedTrees"):
        message += (
            ". TensorFlow had it up to 2.11; the package TensorFlow Decision Forests "
            "trains such models"
        )
    raise AttributeError(message)


def __dir__() -> list[str]:
    from hookbridge.estimator import restored_package

    namespaces = restored_package.namespaces()
    return sorted({*__all__, *dir(namespaces.v1), *dir(namespaces.v2)})
