"""Spares Keras a call to a parameter server in every step.

Keras reads `steps_per_execution` before each step. Under `ParameterServerStrategy`
the variable is on a server, and the coordinator would wait for it in every step.
"""

from __future__ import annotations

from typing import Any

from hookbridge import patching


def of_model(model: Any) -> patching.InstanceMethods | None:
    """Answers the reads of a model's `steps_per_execution` from memory."""
    variable = getattr(model, "_steps_per_execution", None)
    if variable is None or getattr(model, "autotune_steps_per_execution", False):
        return None
    if not callable(getattr(variable, "numpy", None)) or "numpy" in vars(variable):
        return None
    read, assign = variable.numpy, variable.assign
    value: Any = patching.MISSING

    def numpy() -> Any:
        nonlocal value
        if value is patching.MISSING:
            value = read()
        return value

    def assign_and_forget(*args: Any, **kwargs: Any) -> Any:
        nonlocal value
        value = patching.MISSING
        return assign(*args, **kwargs)

    methods = patching.InstanceMethods(
        variable, {"numpy": numpy, "assign": assign_and_forget}
    )
    return methods if methods.install() else None
