"""The names that `from module import *` gives a program."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hookbridge.contrib.module_views import View, modules_of
from hookbridge.old_programs.reading.names.import_statements import canonical
from hookbridge.tf1_names.old_keras import KERAS, names_of
from hookbridge.tf1_names.target import table

# What the list of TensorFlow 1.15 has not, and its star gave.
_MORE = ("contrib", "flags", "__version__")


def star_names(targets_tf1: bool, dotted: str, module: object) -> Collection[str]:
    """Return the names of a star: those of TensorFlow 1.15 in a file that means it."""
    root, _, inside = canonical(dotted).partition(".")
    if inside.startswith("contrib"):
        areas: Mapping[str, list[str]] = table("public-1.15")["contrib"]
        return areas.get(inside[len("contrib.") :], ())
    if (
        targets_tf1
        and root == "tf"
        and (names := table("public-1.15")["tf"].get(inside))
    ):
        return (*names, *(() if inside else _MORE))
    if root == KERAS and isinstance(module, View):
        return {*names_of(dotted), *_of_module(modules_of(module)[0])}
    parts = modules_of(module)[:-1] if isinstance(module, View) else ()
    return dict.fromkeys(n for part in parts or (module,) for n in _of_module(part))


def _of_module(module: object) -> list[str]:
    """Return what a module lists, or its names without an underscore."""
    names: list[str] | None = getattr(module, "__all__", None)
    return names or [name for name in dir(module) if not name.startswith("_")]
