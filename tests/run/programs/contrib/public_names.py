"""Asks for every public name of TensorFlow 1.15 and prints those that do not live.

The line before that has those of `tf.contrib` for which a rewrite writes another object.
"""

import functools
import importlib
import json
import sys

import tensorflow as tf

from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target

tf.placeholder


def why_dead(place, name):
    """What the program reads where it uses a name; empty if the name lives."""
    try:
        value = getattr(place, name)
        if type(value).__name__ == "Removed":
            value()
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)
    return ""


def is_written_otherwise(name, value):
    """Whether a rewrite replaces a living name by what is not this object."""
    outcome = resolve(name, Target(NEWEST))
    root, _, inside = outcome.replacement.partition(".") if outcome else ("", "", "")
    if root not in ("tf", "tf_slim") or not inside:
        return False
    module = importlib.import_module("tensorflow" if root == "tf" else root)
    return functools.reduce(getattr, inside.split("."), module) is not value


dead, other = {}, []
with open(sys.argv[1]) as file:
    modules_of = json.load(file)
for kind, top in (("tf", tf), ("contrib", tf.contrib)):
    for module, names in modules_of[kind].items():
        place, failure = top, ""
        for part in filter(None, module.split(".")):
            try:
                place = getattr(place, part)
            except AttributeError as error:
                failure = "%s: %s" % (type(error).__name__, error)
                break
        for name in names:
            reason = failure or why_dead(place, name)
            path = ("tf.contrib." if kind == "contrib" else "tf.") + module
            full = "%s.%s" % (path.rstrip("."), name)
            if reason:
                dead[full] = reason
            elif kind == "contrib" and is_written_otherwise(full, getattr(place, name)):
                other.append(full)
print(json.dumps(other))
print(json.dumps(dead))
