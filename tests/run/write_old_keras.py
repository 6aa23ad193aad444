"""Writes data/keras-2.3.json: what became of each name of Keras of 2016 to 2019.

The record tests/run/data/keras_2_3.json has these names. Run it with the newest
TensorFlow and tf_keras, with the folders of unpacked wheels of Keras 2.15, 2.12
and 2.8, which are read and not imported:

    TF_USE_LEGACY_KERAS=1 python tests/run/write_old_keras.py FOLDER...

A row is `[place, last]`. `place` is the public name of the same thing today, below
`tf.keras` or, where only that has it, below `tf.compat.v1.keras`; "run" for what only
`hookbridge run` finds; empty for what is gone. `last` is the newest Keras that has the
name in its old place: 3, 2.15, 2.12 (or another one from 2.4 on) or 2.3. The row of a
module has no name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from hookbridge.contrib import keras_package
from hookbridge.tf1_names import installed_names
from hookbridge.tf1_names.old_keras import own_names
from hookbridge.tf1_names.private_names import moved_in_keras
from hookbridge.tf1_names.target import DATA

RECORD = Path(__file__).with_name("data") / "keras_2_3.json"
V1 = "tf_keras.api._v1.keras"


def main() -> None:
    """Writes the table."""
    tf.compat.v1.disable_v2_behavior()
    record = json.loads(RECORD.read_text("utf-8"))
    in_keras2 = [_names_in(folder, record) for folder in sys.argv[1:]]
    table: dict[str, dict[str, list[Any]]] = {}
    for module, names in record.items():
        for name in ("", *(n for n in names if "." not in n)):
            full = f"{module}.{name}".rstrip(".")
            has = [full in names for names in in_keras2]
            last = 2.15 if has[0] else 2.12 if any(has) else 2.3
            place = _place(module, name, names.get(name) is not None)
            if _is_there(keras, full):
                last = 3
            if place.startswith("tf.compat.v1"):
                last = 2.3  # it needs a graph
            table.setdefault(module, {})[name] = [place, last]
    table["keras"]["__version__"] = ["run", 3]
    rows = ",\n".join(f" {json.dumps(m)}: {json.dumps(n)}" for m, n in table.items())
    (DATA / "keras-2.3.json").write_text(f"{{\n{rows}\n}}\n", "utf-8")


def _names_in(folder: str, record: dict[str, Any]) -> set[str]:
    """The names that the Keras in a folder has."""
    sys.path.insert(0, folder)
    place = sys.modules.pop("keras")
    for cached in (installed_names.package, installed_names.has):
        cached.cache_clear()
    full = [f"{m}.{n}" for m, names in record.items() for n in names] + list(record)
    found = {name for name in full if not installed_names.missing(name).rest}
    sys.path.remove(folder)
    sys.modules["keras"] = place
    return found


def _is_there(package: Any, full: str) -> bool:
    """Whether a package, as it is imported, has a name."""
    parts = full.split(".")
    for number in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:number]))
        except ImportError:
            continue
        for part in parts[number:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return number == len(parts) or not inspect.ismodule(found)
    return False


def _place(module: str, name: str, is_called: bool) -> str:
    """Where a name is today."""
    try:
        view = keras_package.find(module, True)
    except ModuleNotFoundError:
        return ""
    if not name:
        return _place_of_module(module)
    replacement = own_names(module).get(name, "")
    if replacement.startswith("keras."):
        above, _, last = replacement.rpartition(".")
        return _place(above, last, is_called)
    value = getattr(view, name, None)
    if value is None or (inspect.ismodule(value) and is_called):
        return ""
    public = [place for place, held in _public().items() if held.get(name) is value]
    same = module.replace("keras", "", 1).lstrip(".")
    if not public or not is_called:
        return _written(same, name) if same in public else "run"
    parts = same.split(".")
    near = [p for p in public if p.split(".") == parts[: len(p.split("."))]]
    return _written(max(near or public[:1], key=len), name)


def _place_of_module(module: str) -> str:
    """The public module nearest to a module of Keras; "run" without one."""
    rest = module.removeprefix("keras").lstrip(".")
    for place in (rest, *moved_in_keras(f".{rest}"), rest.rpartition(".")[0]):
        if place in _public() and (place or module == "keras"):
            return _written(place, "")
    return "run"


def _written(place: str, name: str) -> str:
    dotted = ".".join(part for part in (place, name) if part)
    is_in_2 = _is_there(None, f"tf_keras.{dotted}".rstrip("."))
    return f"{'tf' if is_in_2 else 'tf.compat.v1'}.keras.{dotted}".rstrip(".")


@functools.cache
def _public() -> dict[str, dict[str, Any]]:
    """The public modules of Keras in `tf.compat.v1`, and their names."""
    root = importlib.import_module(V1)
    names = [one.name for one in pkgutil.walk_packages(root.__path__, f"{V1}.")]
    modules = {name: importlib.import_module(name) for name in (V1, *names)}
    return {
        name.removeprefix(V1).lstrip("."): vars(module)
        for name, module in modules.items()
        if "__internal__" not in name
    }


if __name__ == "__main__":
    main()
