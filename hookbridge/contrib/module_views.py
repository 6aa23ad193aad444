"""Modules that have the names of several modules: a program gets these views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookbridge.ground.imports.lazy_modules import LazyModule, made
from hookbridge.ground.patching import assign


class View(LazyModule):
    """A module with the names of several modules, the first one that has it.

    `overrides` has names that come before them, and the function that makes each value.
    """

    def __init__(
        self,
        name: str,
        modules: Sequence[Any],
        overrides: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(name, modules[0].__doc__)
        names = made(self)
        names["_view_modules"], names["_view_overrides"] = (
            tuple(modules),
            dict(overrides or {}),
        )
        for attribute in ("__path__", "__file__"):
            if hasattr(modules[-1], attribute):
                names[attribute] = getattr(modules[-1], attribute)

    def __getattr__(self, name: str) -> Any:
        make = made(self)["_view_overrides"].get(name)
        if make is not None:
            made(self)[name] = value = make()
            return value
        for module in self._view_modules:
            try:
                return getattr(module, name)
            except AttributeError:
                continue
        raise AttributeError(
            f"module '{self.__name__}' has no attribute '{name}'; TensorFlow removed "
            "it, and `hookbridge run` has no replacement for it"
        )

    def __dir__(self) -> list[str]:
        names = {name for module in self._view_modules for name in dir(module)}
        defined = {name for name in made(self) if not name.startswith("_view_")}
        return sorted({*names, *self._view_overrides, *defined} - {"__all__"})


def modules_of(view: View) -> Sequence[Any]:
    """Return the modules that a view has the names of."""
    modules: Sequence[Any] = made(view)["_view_modules"]
    return modules


class PrivateView(View):
    """A private module: what a program sets there is set in TensorFlow, as natively.

    Deleting such a name restores what was there, as `mock.patch` wants it.
    """

    def __setattr__(self, name: str, value: object) -> None:
        real = self._view_modules[0]
        if name in self._view_overrides or name not in vars(real):
            super().__setattr__(name, value)
            return
        earlier = made(self).setdefault("_view_earlier", {})
        earlier.setdefault(name, []).append(getattr(real, name))
        assign(real, **{name: value})

    def __delattr__(self, name: str) -> None:
        earlier = made(self).get("_view_earlier", {}).get(name)
        if earlier:
            assign(self._view_modules[0], **{name: earlier.pop()})
        else:
            super().__delattr__(name)
