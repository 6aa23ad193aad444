"""The living name for a dead one, where a plain rename is enough.

A *dead* name is one that the target lacks; its *living* name is what to write today.
"""

from __future__ import annotations

import functools
import json
from typing import NamedTuple

from hookbridge.migrate import contrib_names
from hookbridge.migrate.name_findings import describe
from hookbridge.migrate.rules import rule_for
from hookbridge.migrate.target import DATA, Target

_V1 = "tf.compat.v1."
_ESTIMATOR = "hookbridge.estimator"
# The code of names that hookbridge carries itself, under `hb.contrib`.
CARRIED = "CARRIED"
# Names that mean different things in `tf.estimator` and `tf.compat.v1.estimator`.
OTHER_IN_V1 = frozenset(
    {
        *("BaselineClassifier", "BaselineEstimator", "BaselineRegressor"),
        *("DNNClassifier", "DNNEstimator", "DNNLinearCombinedClassifier"),
        *("DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor", "DNNRegressor"),
        *("Estimator", "LinearClassifier", "LinearEstimator", "LinearRegressor"),
        *("classifier_parse_example_spec", "regressor_parse_example_spec"),
        *("experimental", "export"),
    }
)
# Names of contrib whose living name is given here and not looked for in `_PLACES`.
_RENAMED = {
    "tf.contrib.lookup.HashTable": "tf.compat.v1.lookup.StaticHashTable",
    "tf.contrib.lookup.MutableHashTable": "tf.lookup.experimental.MutableHashTable",
    "tf.contrib.estimator.replicate_model_fn": "hookbridge.replicate_model_fn",
    "tf.contrib.estimator.TowerOptimizer": "hookbridge.TowerOptimizer",
}
_RENAMED |= {
    f"tf.contrib.lookup.{function}": f"lookup_ops.{function}"
    for function in (
        *("index_table_from_file", "index_table_from_tensor"),
        *("index_to_string_table_from_file", "index_to_string_table_from_tensor"),
    )
}
# Cells that v1 has. They are not in the target's list of names: Keras brings them.
_RENAMED |= {
    f"tf.contrib.rnn.{cell}": f"tf.compat.v1.nn.rnn_cell.{cell}"
    for cell in (
        *("BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper"),
        *("GRUCell", "LSTMCell", "LSTMStateTuple", "MultiRNNCell", "RNNCell"),
        "ResidualWrapper",
    )
}
# Prefix of contrib -> where its names may live on; the first place that has it counts.
_PLACES = {
    "tf.contrib.slim": ("tf_slim",),
    "tf.contrib.layers": ("tf_slim.layers", "tf_slim"),
    "tf.contrib.losses": ("tf_slim.losses",),
    "tf.contrib.metrics": ("tf_slim.metrics",),
    "tf.contrib.framework.nest": ("tf.nest",),
    "tf.contrib.framework": ("tf_slim", "tf.compat.v1.train"),
    "tf.contrib.estimator": (_ESTIMATOR, f"{_ESTIMATOR}.experimental"),
    "tf.contrib.data": ("tf.compat.v1.data", "tf.data.experimental"),
    "tf.contrib.lookup": ("tf.lookup",),
    "tf.contrib.rnn": ("tf.compat.v1.nn",),
    "tf.contrib.distribute": ("tf.distribute", "tf.distribute.experimental"),
    "tf.contrib.cluster_resolver": ("tf.distribute.cluster_resolver",),
}


class NewName(NamedTuple):
    """What to write for a dead name.

    Attributes:
      code: the reason code of the rule.
      dotted: the living name; its root is `tf`, `hookbridge`, a package, or
        `lookup_ops`, the module of `tensorflow.python.ops`.
    """

    code: str
    dotted: str


def new_name(name: str, target: Target) -> NewName | None:
    """The living name for a canonical name; None if it is not dead or none is known."""
    found = describe(name, target)
    if found is None:
        return None
    code, _, _, way_out = found
    dotted = _dotted(name, code, way_out, target)
    if dotted is not None:
        return NewName(code, dotted)
    carried = contrib_names.carried_name(name)
    return None if carried is None else NewName(CARRIED, carried)


def _dotted(name: str, code: str, way_out: str, target: Target) -> str | None:
    if code in ("HOOK_NAME", "V1_NAME"):
        return way_out.strip("`")
    if code == "CONTRIB_GLOBAL_STEP":
        return f"{_V1}train.{name.rpartition('.')[2]}"
    if code == "LAYERS":
        living = name if name.startswith(_V1) else name.replace("tf.", _V1, 1)
        return living if living != name and target.has(living) else None
    if code == "ESTIMATOR_INPUTS":
        rest = name[len("tf.estimator.inputs") :]
        return f"{_ESTIMATOR}.v1.inputs{rest}"
    if code == "ESTIMATOR":
        return _estimator(name)
    if code == "ESTIMATOR_PRIVATE":
        return _public_estimator(name)
    if code == "KERAS_PRIVATE":
        return name.replace("tensorflow.python.keras", "tf.keras", 1)
    if name in _RENAMED:
        return _RENAMED[name]
    return _contrib(name, target) if code.startswith("CONTRIB") else None


def _estimator(name: str) -> str:
    matched = rule_for(name)
    assert matched is not None
    rest = name[len(matched[1]) + 1 :]
    first = rest.partition(".")[0]
    v1 = matched[1] == f"{_V1}estimator" and (not rest or first in OTHER_IN_V1)
    inputs = rest == "inputs" or rest.startswith("inputs.")
    parts = (_ESTIMATOR, "v1" if v1 or inputs else "", rest)
    return ".".join(part for part in parts if part)


def _public_estimator(name: str) -> str | None:
    """The public name for a name in a private module of Estimator, if any."""
    parts = name.split(".")
    classes = [i for i, part in enumerate(parts) if part[:1].isupper()]
    public = ".".join(parts[classes[0] :]) if classes else parts[-1]
    for place in ("", "export.", "experimental."):
        if has_estimator(f"{place}{public}"):
            return f"{_ESTIMATOR}.{place}{public}"
    return None


def has_estimator(rest: str) -> bool:
    """Whether the last TensorFlow with Estimator has `tf.estimator.{rest}`."""
    return _last_with_estimator().has(f"tf.estimator.{rest}")


@functools.cache
def _last_with_estimator() -> Target:
    return Target("2.15")


def _contrib(name: str, target: Target) -> str | None:
    prefixes = [p for p in _PLACES if name == p or name.startswith(f"{p}.")]
    if not prefixes:
        return None
    prefix = max(prefixes, key=len)
    rest = name[len(prefix) + 1 :]
    if not rest:
        return "tf_slim" if prefix == "tf.contrib.slim" else None
    for place in _PLACES[prefix]:
        living = f"{place}.{rest}"
        if place.startswith("tf_slim"):
            there = _slim_has(living) and describe(living, target) is None
        elif place.startswith(_ESTIMATOR):
            there = has_estimator(living[len(_ESTIMATOR) + 1 :])
        else:
            there = target.has(living)
        if there:
            return living
    return None


@functools.cache
def _slim() -> dict[str, list[str]]:
    text = (DATA / "tf_slim-1.1.json").read_text("utf-8")
    found: dict[str, list[str]] = json.loads(text)
    return found


def _slim_has(name: str) -> bool:
    """Whether tf_slim has a name; attributes of a class or function are not checked."""
    module = ""
    for part in name.split(".")[1:]:
        if part not in _slim().get(module, ()):
            return False
        module = f"{module}.{part}" if module else part
        if module not in _slim():
            return True
    return True
