"""Writes the list of living names of tf.contrib, for `hookbridge doctor`.

    hookbridge run --keras=2 tests/run/write_living_names.py

It asks for each name that TensorFlow 1.15 had, and for those of the present list.
"""

import json
import sys
from typing import Any

import tensorflow as tf

from hookbridge.contrib import namespace
from hookbridge.contrib.without_replacement import Removed
from hookbridge.tf1_names import contrib_names
from hookbridge.tf1_names.target import table

# Area -> modules whose names are added to those of 1.15: older versions had them.
MORE = {"estimator": ["estimator.experimental"], "data": ["tf.compat.v1.data"]}


def listed(source: str) -> list[str]:
    module = namespace.resolve_source(contrib_names.Source.parse(source))
    return [n for n in dir(module) if not n.startswith("_")]


def main() -> None:
    known = {area: {*names} for area, names in contrib_names.names().items()}
    for area, names in table("public-1.15")["contrib"].items():
        known.setdefault(area, set()).update(names)
    for area, sources in MORE.items():
        known[area].update(n for s in sources for n in listed(s))
    found = {}
    for area in sorted({*known, *contrib_names.AREAS} - {""}):
        module: Any = namespace.root()
        for part in area.split("."):
            module = getattr(module, part, Removed(area))
        names = [
            name
            for name in sorted(known.get(area, ()))
            if not isinstance(getattr(module, name, Removed(name)), Removed)
        ]
        if names:
            found[area] = names
    assert not hasattr(sys.modules["tensorflow"], "contrib")
    lines = [f' "{area}": {json.dumps(names)}' for area, names in found.items()]
    contrib_names.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


print(tf.placeholder)
main()
