"""Spares Keras a call to a parameter server in every step.

Keras asks for `steps_per_execution` before each step, and under
`ParameterServerStrategy` the variable is on a server: the coordinator, which has
nothing to do but to schedule, waits for it as long as for everything else.
"""

from __future__ import annotations

from typing import Any

_MISSING = object()


class CachedReads:
    """Answers `variable.numpy()` from memory until somebody assigns.

    Args:
      variable: an eager variable that is written only through its own `assign`.
    """

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self._value: Any = _MISSING
        read, assign = variable.numpy, variable.assign

        def numpy() -> Any:
            if self._value is _MISSING:
                self._value = read()
            return self._value

        def assign_and_forget(*args: Any, **kwargs: Any) -> Any:
            self._value = _MISSING
            return assign(*args, **kwargs)

        vars(variable).update(numpy=numpy, assign=assign_and_forget)

    def end(self) -> None:
        """Gives the variable its own methods back."""
        for name in ("numpy", "assign"):
            vars(self._variable).pop(name, None)


def of_model(model: Any) -> CachedReads | None:
    """Caches the reads of a model's `steps_per_execution`, where that can be done."""
    variable = getattr(model, "_steps_per_execution", None)
    if variable is None or getattr(model, "autotune_steps_per_execution", False):
        return None
    if not hasattr(variable, "__dict__") or not callable(
        getattr(variable, "numpy", None)
    ):
        return None
    return None if "numpy" in vars(variable) else CachedReads(variable)
