"""Private names of TensorFlow 1.15 and Estimator that moved are found."""

from __future__ import annotations

import inspect
import json
import operator
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from fork_server import ForkServer
from launching import output_of

import hookbridge as hb
from hookbridge.contrib import private_modules
from hookbridge.old_programs.reading.names.import_statements import as_v1
from hookbridge.old_programs.scanning.diagnosis import diagnose
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target

ONE_KERAS = True
# What defines a public name in TensorFlow 1.15.5, and is no more in its module on the
# newest TensorFlow: `{private name: public names}`, from all modules that
# `import tensorflow` loads there. Names that are public no more are left out.
PUBLIC = json.loads(
    (Path(__file__).with_name("data") / "private_1_15.json").read_text("utf-8")
)

# The public functions and classes of Keras 1.15: `{private module: {name: its public
# names}}`, below `tensorflow.python.keras`.
OF_KERAS = json.loads(
    (Path(__file__).with_name("data") / "private_keras_1_15.json").read_text("utf-8")
)
# Functions that take other arguments under their public name today.
LEGACY = {"deserialize_keras_object", "serialize_keras_object"}


def test_a_moved_private_name_is_the_public_one() -> None:
    wrong = []
    of_keras2 = "tensorflow.python.layers."  # Keras 3 has none of these
    for name, public in PUBLIC.items():
        if name.startswith(of_keras2):
            continue
        module, _, last = name.rpartition(".")
        found = getattr(private_modules.find(module), last, None)
        replacement = [operator.attrgetter(one)(tf.compat.v1) for one in public]
        if not any(found is one for one in replacement):
            wrong.append((name, found))
    assert not wrong


def test_a_moved_private_name_has_the_same_answer() -> None:
    target, other = Target(NEWEST), []
    for name, public in PUBLIC.items():
        outcome = resolve(name, target)
        # Of another TensorFlow than the installed one no private names are known.
        if outcome is not None and outcome.replacement.startswith("tf."):
            replacement = outcome.replacement.removeprefix("tf.").removeprefix(
                "compat.v1."
            )
            if replacement not in public:
                other.append((name, outcome.replacement))
    assert not other


@pytest.mark.both_tensorflows
@pytest.mark.parametrize(
    ("old", "today"),
    [
        (
            "tensorflow.python.training.gen_training_ops.apply_gradient_descent",
            "tensorflow.python.ops.gen_training_ops.apply_gradient_descent",
        ),
        (
            "tensorflow.python.ops.variables.RefVariable",
            "tensorflow.python.ops.ref_variable.RefVariable",
        ),
        (
            "tensorflow.python.autograph.core.naming.Namer",
            "tensorflow.python.autograph.pyct.naming.Namer",
        ),
    ],
)
def test_a_name_whose_private_module_moved_is_the_one_of_today(
    old: str, today: str
) -> None:
    outcome = resolve(old, Target(NEWEST))
    assert outcome is not None and outcome.replacement == today
    by_old_name, by_new_name = [
        getattr(private_modules.find(module), name)
        for module, _, name in (name.rpartition(".") for name in (old, today))
    ]
    assert by_old_name is by_new_name


def test_a_private_name_of_keras_has_the_answer_of_its_public_name() -> None:
    target, other = Target(NEWEST), set()
    for module, names in OF_KERAS.items():
        for name, public in names.items():
            outcome = resolve(f"tensorflow.python.keras.{module}.{name}", target)
            assert outcome is not None
            if not outcome.replacement:  # none of its public names is there today
                in_v1 = [place for place in public if place.startswith("compat.v1.")]
                assert not any(target.has(f"tf.{place}") for place in in_v1), name
            elif as_v1(outcome.replacement).removeprefix("tf.") not in public:
                other.add(name)
    assert other == LEGACY


def test_a_private_name_of_keras_is_the_public_one(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """For a program that imports all of them; those that are public no more are not."""
    lines = ["import tensorflow as tf", "import operator", "tf.placeholder", "all = []"]
    for module, names in OF_KERAS.items():
        for name, public in names.items():
            lines += [
                f"from tensorflow.python.keras.{module} import {name} as one",
                f"all.append(({name!r}, one, {public}))",
            ]
    lines += [
        # Keras made `Model` of it and its old subclass.
        "from tensorflow.python.keras.engine import network",
        "all.append(('Network', network.Network, ['keras.Model']))",
        "for name, one, public in all:",
        "    living = []",
        "    for place in public:",
        "        try: living.append(operator.attrgetter(place)(tf))",
        "        except AttributeError: pass",
        "    if living and not any(one is other for other in living): print(name)",
    ]
    output = output_of(launcher, tmp_path, "\n".join(lines) + "\n")
    assert set(output.split()) == LEGACY


def test_a_private_name_of_estimator_is_the_same_object() -> None:
    """What a rewrite writes for each name of each module that Estimator has loaded."""
    assert hb.estimator.Estimator
    target, other = Target(NEWEST), []
    for module, name, value in _of_estimator():
        if inspect.ismodule(value):
            continue
        outcome = resolve(f"{module}.{name}", target)
        assert outcome is not None and outcome.replacement, (module, name)
        if _living(outcome.replacement) is not value:
            other.append((module, name, outcome.replacement))
    assert not other


def _of_estimator() -> Iterator[tuple[str, str, Any]]:
    """The private names of Estimator: module, name and value."""
    for module, loaded in sorted(sys.modules.items()):
        if module.startswith("tensorflow_estimator.python.") and ".api." not in module:
            for name, value in vars(loaded).items():
                if not name.startswith("__"):
                    yield module, name, value


def _living(name: str) -> Any:
    """The object that a living name means."""
    root, _, rest = name.partition(".")
    return operator.attrgetter(rest)({"hookbridge": hb, "tf": tf}[root])


def test_a_private_name_that_estimator_has_lost_is_left_to_a_person(
    tmp_path: Path,
) -> None:
    program = tmp_path / "old.py"
    program.write_text(
        "import tensorflow as tf\n"
        "from tensorflow.python.estimator.canned import head\n"
        "tf.placeholder(head._Head)\n"
        "head._no_such_head\n"
    )
    (left,) = (one for one in diagnose([program], NEWEST).report.findings if one.person)
    assert (left.code, left.line) == ("PRIVATE_GONE", 4)
    with pytest.raises(AttributeError, match="canned` has no `no_such_module`"):
        assert hb.estimator.python.canned.no_such_module
    assert "head" in dir(hb.estimator.python.canned)
    # No other module imports this one.
    assert hb.estimator.python.inputs.inputs.numpy_input_fn
