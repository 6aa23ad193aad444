"""Writes the list of living names of tf.contrib, for `hookbridge doctor`.

    hookbridge run --keras=2 tests/run/write_living_names.py [FILE]

FILE has the names of TensorFlow 1.15, `{area: [names]}`. Without FILE, the names of
the present list are checked again.
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

from hookbridge.contrib import namespace
from hookbridge.contrib.gone import Gone
from hookbridge.old_programs.names import contrib_names

# Area -> modules whose names are added to those of 1.15: older versions had them.
MORE = {"estimator": ["estimator.experimental"], "data": ["tf.compat.v1.data"]}


def listed(source: str) -> list[str]:
    return [n for n in dir(namespace.resolve(source)) if not n.startswith("_")]


def main(path: str = "") -> None:
    known = json.loads(Path(path).read_text()) if path else contrib_names.names()
    for area, sources in MORE.items():
        known[area] = sorted({*known[area], *(n for s in sources for n in listed(s))})
    found = {}
    for area in sorted({*known, *contrib_names.AREAS}):
        module = namespace.root()
        for part in area.split("."):
            module = getattr(module, part)
        names = [
            name
            for name in sorted(set(known.get(area, ())))
            if not isinstance(getattr(module, name), Gone)
        ]
        if names:
            found[area] = names
    assert not hasattr(sys.modules["tensorflow"], "contrib")
    lines = [f' "{area}": {json.dumps(names)}' for area, names in found.items()]
    contrib_names.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


print(tf.placeholder)
main(*sys.argv[1:])
