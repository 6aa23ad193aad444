"""What the Estimator package sees when it imports TensorFlow.

The package was written for TensorFlow 2.15. A newer TensorFlow is not patched to look
like 2.15. Instead, the package's modules run with their own `__import__`. It gives
them TensorFlow with `tf_keras` as its Keras, and with stand-ins for the modules that
are gone. No other module of the process sees any of it.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookbridge.estimator import stand_ins
from hookbridge.estimator.facade import Facade
from hookbridge.ground import compat

# Public names of Keras under `tf` -> where tf_keras has them. If `tf.keras` is Keras 3,
# TensorFlow's own would be Keras 3 or raise.
KERAS_NAMES: dict[str, str] = {
    "keras": "tf_keras_v2",
    "losses": "tf_keras_v2.losses",
    "metrics": "tf_keras_v2.metrics",
    "optimizers": "tf_keras_v2.optimizers",
    "initializers": "tf_keras_v2.initializers",
    "compat.v1.keras": "tf_keras_v1",
    "compat.v1.layers": "tf_keras_v1.__internal__.legacy.layers",
    "compat.v1.nn.rnn_cell": "tf_keras_v1.__internal__.legacy.rnn_cell",
    "compat.v2.keras": "tf_keras_v2",
    "compat.v2.losses": "tf_keras_v2.losses",
    "compat.v2.metrics": "tf_keras_v2.metrics",
    "compat.v2.optimizers": "tf_keras_v2.optimizers",
    "compat.v2.initializers": "tf_keras_v2.initializers",
}


def _resolve_keras(where: str) -> Any:
    key, *attributes = where.split(".")
    return functools.reduce(getattr, attributes, compat.private(key))


def _facade_tree(real: types.ModuleType, names: Mapping[str, str]) -> Facade:
    """Return a facade of `real` with dotted `names` replaced, through facades."""
    replaced: dict[str, Callable[[], Any]] = {}
    deeper: dict[str, dict[str, str]] = {}
    for name, where in names.items():
        head, _, inside = name.partition(".")
        if inside:
            deeper.setdefault(head, {})[inside] = where
        else:
            replaced[name] = functools.partial(_resolve_keras, where)
    for head, below in deeper.items():
        facade = _facade_tree(getattr(real, head), below)
        replaced[head] = functools.partial(lambda value: value, facade)
    return Facade(real, replaced)


@functools.cache
def tensorflow_view() -> Facade:
    """Return `tf` as the Estimator package has to see it."""
    return _facade_tree(importlib.import_module("tensorflow"), KERAS_NAMES)


def view_import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """`__import__` of the package's modules."""
    if level or name.partition(".")[0] != "tensorflow":
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    if not fromlist:
        builtins.__import__(name, globals, locals, (), 0)
        return tensorflow_view()
    if name in stand_ins.STAND_INS:
        return stand_ins.load(name)
    here = {
        attribute: functools.partial(stand_ins.load, f"{name}.{attribute}")
        for attribute in fromlist
        if f"{name}.{attribute}" in stand_ins.STAND_INS
    }
    real_names = tuple(attribute for attribute in fromlist if attribute not in here)
    real = _real_import(name, globals, locals, real_names)
    if name == "tensorflow":
        return tensorflow_view()
    return Facade(real, here) if here else real


def _real_import(
    name: str,
    globals: Mapping[str, Any] | None,
    locals: Mapping[str, Any] | None,
    attributes: tuple[str, ...],
) -> Any:
    """Return a module of the installed TensorFlow.

    Raise if it lacks one of the attributes.

    Without attributes Python would give the topmost package.
    """
    wanted = attributes or ("__name__",)
    try:
        real = builtins.__import__(name, globals, locals, wanted, 0)
    except ModuleNotFoundError as e:
        raise compat.PrivateNameMovedError(stand_ins.moved_message(name)) from e
    for attribute in attributes:
        if attribute != "*" and not hasattr(real, attribute):
            raise compat.PrivateNameMovedError(
                stand_ins.moved_message(f"{name}.{attribute}")
            )
    return real


def view_builtins() -> dict[str, Any]:
    """Return the builtins that the package's modules run with."""
    return {**vars(builtins), "__import__": view_import}
