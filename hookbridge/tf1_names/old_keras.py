"""What becomes of a name of Keras as a package of its own, as it was until 2.3.

Keras 3 and tf_keras have other modules. `tf.compat.v1.keras` has the same names as the
Keras of that time, and its meaning of them. data/keras-2.3.json has a row for each name
of Keras 2.2.4 and 2.3.1, and for what they no longer had of Keras 1.2.2;
tests/run/write_old_keras.py writes it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from hookbridge.tf1_names.outcome import V1, Resolution, hint
from hookbridge.tf1_names.private_names import moved_in_keras
from hookbridge.tf1_names.removed_in_libraries import removed_part
from hookbridge.tf1_names.syntax import beginnings, is_below
from hookbridge.tf1_names.target import Target, had_in_tf1, table

KERAS = "keras"
TF_KERAS = "tf.keras"
# The place of what only `hookbridge run` finds, in private modules or in ours.
_BY_RUN = "run"
# Module -> names that are found in another place today, and in which.
_OWN: dict[str, dict[str, str]] = table("names")["names of standalone keras"]


# The version of Keras; only the package of Keras 2 has it, and not its `tf.keras`.
VERSIONS = tuple(f"{place}.__version__" for place in (KERAS, TF_KERAS, f"{V1}.{KERAS}"))
# The class of optimizers with `get_updates`, which programs derived theirs from. That
# of `tf.keras` is another one.
OPTIMIZER = f"{KERAS}.optimizers.Optimizer"
# The codes of its names that have a current name.
CODES = ("KERAS2_NAME", "KERAS_MOVED")
# Optimizers with the arguments that they had.
_LEGACY = frozenset(
    f"{TF_KERAS}.optimizers.{name}"
    for name in ("Adadelta", "Adagrad", "Adam", "Adamax", "Nadam", "RMSprop", "SGD")
)


class _Row(NamedTuple):
    """What became of a name."""

    place: str  # its current public name, `_BY_RUN`, or empty if it was removed
    last: float  # the newest Keras that has it in its old place


def last_keras(name: str) -> float:
    """Return the newest Keras that has a name of `keras`; 3 if it is not known."""
    row, _ = _row(name)
    return row.last if row is not None else 3


def was_there(name: str) -> bool:
    """Return whether a name of `keras` is one of Keras 1 or 2 that is known."""
    return _row(name)[0] is not None


def names_of(module: str) -> list[str]:
    """Return the names that a module of `keras` had; None of an unknown module."""
    return [name for name in table("keras-2.3").get(module, ()) if name]


@functools.cache
def _row(name: str) -> tuple[_Row | None, str]:
    """Return what became of a name, or of its known beginning, and the rest."""
    rows: dict[str, dict[str, list[str | float]]] = table("keras-2.3")
    for module, inside in beginnings(name):
        if module in rows:
            attribute, dot, suffix = inside.partition(".")
            if attribute not in rows[module]:
                return None, ""
            moved_to, last_release = rows[module][attribute]
            return _Row(str(moved_to), float(last_release)), f"{dot}{suffix}"
    return None, ""


def resolve(name: str, prefix: str, target: Target) -> Resolution | None:
    """Return what becomes of a name of `keras`, in a program that needs Keras 2.

    Where the Keras of the target has the name, too (`is_there`), it stays as it is in
    other programs.
    """
    if name in VERSIONS:
        if target.has_estimator:
            return Resolution(
                "KERAS_BY_RUN", hint='`importlib.metadata.version("keras")`'
            )
        return Resolution("KERAS_MOVED", "tf_keras.__version__")
    row, suffix = _row(name)
    if row is None:
        return None
    if row.place == _BY_RUN:
        return Resolution("KERAS_BY_RUN", hint=_way_out(name))
    if not row.place:
        return Resolution("KERAS_GONE", hint=_way_out(name))
    code = "KERAS2_NAME" if is_there(name, target) else "KERAS_MOVED"
    return Resolution(code, row.place + suffix)


def is_there(name: str, target: Target) -> bool:
    """Return whether the Keras that comes with a TensorFlow has a name of `keras`.

    Args:
      name: the dotted name, which begins with `keras`.
      target: the TensorFlow.
    """
    if name in VERSIONS:
        return not target.has_estimator or name.startswith(KERAS)
    is_of_keras = name.partition(".")[0] == KERAS and not removed_part(name)
    return is_of_keras and last_keras(name) >= (2.15 if target.has_estimator else 3)


def resolve_in_tensorflow(name: str) -> Resolution | None:
    """Return what becomes of a name of `tf.keras` that only `keras` had."""
    if ".keras." not in name or had_in_tf1(name):
        return None
    short = name.replace(f"{V1}.", "tf.", 1)
    old = short.replace(TF_KERAS, KERAS, 1)
    row, suffix = _row(old)
    if row is None or row.place + suffix in (name, short):
        return None
    if row.place.startswith("tf."):
        replacement = row.place + suffix
        return Resolution("KERAS_MOVED", replacement.replace("tf.", f"{V1}.", 1))
    code = "KERAS_BY_RUN" if row.place else "KERAS_GONE"
    return Resolution(code, hint=_way_out(old))


def _way_out(name: str) -> str:
    """Return what to write for a name that has no public name today, in words."""
    return hint(f"tf.{name}", unknown="your own code")


def in_file(outcome: Resolution, target: Target, *, of_tf1: bool) -> Resolution:
    """Return an outcome with the name of `tf.keras` that a file has to write.

    Args:
      outcome: what becomes of a name; those of other modules stay as they are.
      target: the TensorFlow that has the new name.
      of_tf1: whether the file means TensorFlow 1 by `tf`.
    """
    name = outcome.replacement
    is_of_package = outcome.code in CODES
    if not (is_of_package or outcome.code == "KERAS_PRIVATE"):
        return outcome
    if of_tf1 and is_of_package and name == f"tf.{OPTIMIZER}":
        return Resolution("KERAS_BY_RUN", hint="a class of `tf.keras.optimizers`")
    if of_tf1 and is_below(name, TF_KERAS) and target.has_v1(name):
        name = name.replace("tf.", f"{V1}.", 1)
    elif is_of_package and not of_tf1 and name in _LEGACY:
        name = name.replace(".optimizers.", ".optimizers.legacy.")
    return outcome._replace(replacement=name)


def places(dotted: str, package: str, of_tf1: bool) -> list[str]:
    """Return where `run` looks for what a module of `keras` had, in order.

    Args:
      dotted: the name of the module: `keras.layers.core`.
      package: the package of Keras 2.
      of_tf1: whether the file that imports it means TensorFlow 1.
    """
    suffix = dotted.removeprefix(KERAS)
    current = [suffix, *(f".{moved}" for moved in moved_in_keras(suffix))]
    candidates = []
    for current_suffix in current:
        both = [
            f"{package}{current_suffix}",
            f"{package}.api._v1.keras{current_suffix}",
        ]
        candidates += both[::-1] if of_tf1 else both
        candidates.append(f"{package}.src{current_suffix}")
    # These take `lr` and `decay`.
    legacy = [f"{package}.optimizers.legacy"] if suffix == ".optimizers" else []
    return candidates if of_tf1 else [*legacy, *candidates]


def own_names(dotted: str) -> dict[str, str]:
    """Return the names of a module that are in another place, and that place."""
    return _OWN.get(dotted, {})
