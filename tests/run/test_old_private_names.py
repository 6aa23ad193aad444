"""Private names of TensorFlow 1.15 that moved: those that are public are found."""

from __future__ import annotations

import json
import operator
from pathlib import Path

import tensorflow as tf

from hookbridge.contrib import private_modules
from hookbridge.old_programs.names.resolution import resolve
from hookbridge.old_programs.names.target import NEWEST, Target

ONE_KERAS = True
# What defines a public name in TensorFlow 1.15.5, and is no more in its module on the
# newest TensorFlow: `{private name: public names}`, from all modules that
# `import tensorflow` loads there. Names that are public no more are left out.
PUBLIC = json.loads(
    (Path(__file__).with_name("data") / "private_1_15.json").read_text("utf-8")
)


def test_a_moved_private_name_is_the_public_one() -> None:
    wrong = []
    of_keras2 = "tensorflow.python.layers."  # Keras 3 has none of these
    for name, public in PUBLIC.items():
        if name.startswith(of_keras2):
            continue
        module, _, last = name.rpartition(".")
        found = getattr(private_modules.find(module), last, None)
        living = [operator.attrgetter(one)(tf.compat.v1) for one in public]
        if not any(found is one for one in living):
            wrong.append((name, found))
    assert not wrong


def test_a_moved_private_name_has_the_same_answer() -> None:
    target, other = Target(NEWEST), []
    for name, public in PUBLIC.items():
        outcome = resolve(name, target)
        # Of another TensorFlow than the installed one no private names are known.
        if outcome is not None and outcome.living.startswith("tf."):
            living = outcome.living.removeprefix("tf.").removeprefix("compat.v1.")
            if living not in public:
                other.append((name, outcome.living))
    assert not other
