"""Asks for every public name of TensorFlow 1.15 and prints those that do not live."""

import json
import sys

import tensorflow as tf

tf.placeholder


def why_dead(place, name):
    """What the program reads where it uses a name; empty if the name lives."""
    try:
        value = getattr(place, name)
        if type(value).__name__ == "Gone":
            value()
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)
    return ""


dead = {}
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
            if reason:
                path = ("tf.contrib." if kind == "contrib" else "tf.") + module
                dead["%s.%s" % (path.rstrip("."), name)] = reason
print(json.dumps(dead))
