"""Arguments that functions of NumPy have lost, and take again."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from hookbridge.ground.patching import InstanceMethods
from hookbridge.old_programs.names.renamed_arguments import OF_FUNCTIONS


@functools.cache
def bring_back() -> None:
    """Makes the functions take their old arguments too; who has them stays as it is."""
    for name, (old, today) in OF_FUNCTIONS.items():
        module, _, last = name.rpartition(".")
        owner = importlib.import_module(module)
        function = getattr(owner, last)
        if old not in inspect.signature(function).parameters:
            InstanceMethods(owner, {last: _taking(function, old, today)}).install()


def _taking(function: Callable[..., Any], old: str, today: str) -> Callable[..., Any]:
    """The function, which takes an argument by its old name too."""

    @functools.wraps(function)
    def taking(*args: Any, **named: Any) -> Any:
        if old in named:
            named[today] = named.pop(old)
        return function(*args, **named)

    return taking
