"""Prints the arguments and the lacking members of names of tf.contrib as JSON.

Arguments that may have a place; `...` if others follow that are passed on. Arguments
of this program: a file `{name: arguments on 1.15}`, one `{class: members on 1.15}`, and
those of `areas.py`, which runs at the end.
"""
import inspect
import json
import sys

import tensorflow as tf


def found(name):
    value = tf.contrib
    for part in name.split("."):
        value = getattr(value, part)
    return value


def arguments(value):
    if inspect.isclass(value):  # TensorFlow wraps some constructors
        value = inspect.unwrap(value.__init__).__get__(value)
    parameters = inspect.signature(value).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    is_open |= any(p.kind is p.KEYWORD_ONLY for p in parameters)
    return " ".join(names + ["..."] * is_open)


def lacking(value, members):
    """The members that a class has neither as attributes nor as declared fields."""
    if not inspect.isclass(value):
        return None
    fields = {n for c in inspect.getmro(value) for n in inspect.get_annotations(c)}
    names = members.split()
    return " ".join(n for n in names if n not in fields and not hasattr(value, n))


signatures, classes = (json.load(open(path)) for path in sys.argv[1:3])
del sys.argv[1:3]
print(tf.VERSION, file=sys.stderr)
ours = {n: found(n).__module__.startswith("hookbridge") for n in signatures}
print(
    json.dumps(
        {
            "arguments": {n: arguments(found(n)) for n in signatures},
            "ours": [name for name, is_ours in ours.items() if is_ours],
            "lacking": {n: lacking(found(n), m) for n, m in classes.items()},
        }
    )
)
import areas  # writes what the areas do
