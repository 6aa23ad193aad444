"""What an error says of `tf.estimator` where TensorFlow has none (2.16 and later).

Nothing but the text of that error changes: `hasattr(tf, "estimator")` stays False.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from hookbridge.pages import PAGES
from hookbridge.patching import InstanceMethods

_WAY_OUT = (
    "TensorFlow 2.16 and later have no Estimator. `hb.estimator.install()` puts it "
    "there, and `hookbridge run PROGRAM.py` runs a program of TensorFlow 1 with it, "
    f"unedited. See {PAGES['estimator']}."
)


def tell_of_estimator(tf: ModuleType) -> None:
    """Gives the modules `tf` and `tf.compat.v1` a better error; once is enough.

    Args:
      tf: TensorFlow, perhaps while it is still being imported.
    """
    namespaces = (tf, getattr(getattr(tf, "compat", None), "v1", None))
    for module in namespaces:
        if module is None or "estimator" in vars(module):
            continue  # it has one, or brings it when it is asked for
        module = getattr(module, "_tfmw_wrapped_module", module)
        before = vars(module).get("__getattr__")
        if not isinstance(before, functools.partial):
            explain = functools.partial(_explain, module, before)
            InstanceMethods(module, {"__getattr__": explain}).install()


def _explain(module: ModuleType, before: Any, name: str) -> Any:
    """What Python asks for an attribute that a module does not have."""
    if before is not None and name != "estimator":
        return before(name)
    text = f"module {module.__name__!r} has no attribute {name!r}"
    if name == "estimator":
        text = f"{text}: {_WAY_OUT}"
    raise AttributeError(text, name=name, obj=module)
