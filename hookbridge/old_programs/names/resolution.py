"""What becomes of a name of TensorFlow 1: one answer for run, doctor, scan and rewrite.

A *living* name is what to write today for a name that the target lacks.

To add a name, say in data/names.json where it is found today. A name that no list there
is for gets a branch of `resolve`, and its code a row in data/codes.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hookbridge.ground.package_files import packaged
from hookbridge.old_programs.names import contrib_names
from hookbridge.old_programs.names.removed import removed, removed_part
from hookbridge.old_programs.names.sources import missing_private, names_in
from hookbridge.old_programs.names.target import (
    Target,
    had_in_tf1,
    slim_has,
    table,
    versions,
)

_V1 = "tf.compat.v1"
_ESTIMATOR = "hookbridge.estimator"
_CARRIED = "hookbridge.contrib"
_MNIST = "tf.examples.tutorials.mnist.input_data"
# Names that mean different things in `tf.estimator` and `tf.compat.v1.estimator`.
OTHER_IN_V1 = frozenset(table("names")["other in v1"])
# Prefixes of Estimator's public names.
_ESTIMATORS = ("tf.estimator", f"{_V1}.estimator", "tensorflow_estimator.estimator")
_OF_KERAS = ("tf.keras.estimator", f"{_V1}.keras.estimator")
# Where hooks and their listeners were, or where TensorFlow defines them.
_OF_HOOKS = (*_ESTIMATORS, *table("names")["modules of hooks"])
_HOOKS = tuple(table("names")["hooks"])
# Functions of tf_slim that need private names of TensorFlow or Keras that are gone.
_SLIM_BROKEN = ("batch_norm", "optimize_loss")
# A part of a private module's name, and the module of `tf.compat.v1` whose public names
# replace those that it lost.
PUBLIC: dict[str, str] = table("names")["public"]
# Private modules that still exist, but may use another Keras than the program's: the
# names of `tf.compat.v1.layers` come before theirs.
LAYERS = frozenset(table("names")["modules of layers"])
# Private names that are there, but are something else than in TensorFlow 1.
OTHERS: dict[str, str] = table("names")["private"]
# Private modules that have another place today.
MOVED: dict[str, str] = table("names")["moved private modules"]


class Resolution(NamedTuple):
    """What becomes of one name."""

    code: str
    living: str = ""  # a dotted name; empty if a rename does not help
    hint: str = ""  # the way out in words, where there is no living name

    @property
    def way_out(self) -> str:
        """What to write or do, in words."""
        shown = self.living.replace("hookbridge", "hb", 1)
        return f"`{shown}`" if shown else self.hint


_NEVER = Resolution("MISSING", hint="TensorFlow 2.15 has no such name either")


def resolve(name: str, target: Target) -> Resolution | None:
    """What becomes of a canonical name; None if the target has it."""
    root, _, rest = name.partition(".")
    if part := removed_part(name):
        return _resolve_removed(name, part)
    if hook := _hook_of_today(name, target):
        return None if target.has(name) else Resolution("HOOK_NAME", hook)
    for prefix, resolver in _RESOLVER_OF_PREFIX.items():
        if f"{name}.".startswith(f"{prefix}."):
            return resolver(name, prefix, target)
    if root != "tf" or target.has(name):
        return None
    if not name.startswith("tf.compat.") and target.has_v1(name):
        return Resolution("V1_NAME", f"{_V1}.{rest}")
    if had_in_tf1(name):
        return _gone(name)
    return Resolution("MISSING", hint=hint(name))


def _hook_of_today(name: str, target: Target) -> str:
    """The name in `tf.compat.v1.train` of a hook that was elsewhere, too."""
    place, _, last = name.rpartition(".")
    hook = f"{_V1}.train.{last}"
    is_hook = place in _OF_HOOKS and last.endswith(_HOOKS)
    return hook if is_hook and target.has(hook) else ""


def _resolve_removed(name: str, part: str) -> Resolution:
    """What stands for a name of another library, of which `part` was removed."""
    row = removed()[part]
    if row.living:
        return Resolution("LOST_NAME", row.living + name[len(part) :])
    if row.is_given_back and name == part:
        return Resolution("LOST_FUNCTION", hint=row.hint)
    return Resolution("LIBRARY_NAME", hint=row.hint)


def hint(name: str) -> str:
    """The way out in words for a name that nothing stands for."""
    hints: dict[str, str] = table("names")["hints"]
    short = name.replace(f"{_V1}.", "tf.", 1)
    prefixes = [p for p in hints if f"{short}.".startswith(f"{p}.")]
    longest = max(prefixes, key=len, default="")
    return hints.get(longest, "see the release notes of TensorFlow").format(name=name)


def is_of_no_version(name: str) -> bool:
    """Whether neither TensorFlow 1.15 nor another known version has a name of `tf`.

    A program of TensorFlow 1 that has such a name does not get there. The names of
    before 1.0 that have a hint are no such names.
    """
    for place in (f"{_ESTIMATOR}.v1.", f"{_ESTIMATOR}."):
        name = name.replace(place, "tf.estimator.", 1)
    name = name.replace(f"{_V1}.", "tf.", 1)
    if had_in_tf1(name) or name in table("names")["hints"]:
        return False
    return not any(Target(version).has(name) for version in versions())


def _gone(name: str) -> Resolution:
    return Resolution("GONE", hint=hint(name))


def _resolve_estimator(name: str, prefix: str, target: Target) -> Resolution | None:
    """The name in `hb.estimator`, or in TensorFlow where that still has Estimator."""
    if prefix.startswith("tf.") and target.has_estimator:
        if target.has(name):
            return None
        v1 = name.replace("tf.", f"{_V1}.", 1)
        return Resolution("V1_NAME", v1) if target.has(v1) else Resolution("MISSING")
    rest = name[len(prefix) + 1 :]
    is_v1 = not has_estimator(rest)
    if is_v1 and not has_estimator(rest, v1=True):
        return _gone(name) if had_in_tf1(f"tf.estimator.{rest}") else _NEVER
    if prefix == f"{_V1}.estimator":
        is_v1 = is_v1 or rest.partition(".")[0] in ("", *OTHER_IN_V1)
    return Resolution("ESTIMATOR", _joined(_ESTIMATOR, "v1" if is_v1 else "", rest))


def _resolve_keras_estimator(
    name: str, prefix: str, target: Target
) -> Resolution | None:
    if target.has_estimator:
        return None
    return Resolution("ESTIMATOR", _joined(_ESTIMATOR, name[len(prefix) + 1 :]))


def _resolve_private_estimator(
    name: str, prefix: str, target: Target
) -> Resolution | None:
    """The public name for a name in a private module of Estimator, if any."""
    parts = name.split(".")
    classes = [i for i, part in enumerate(parts) if part[:1].isupper()]
    public = ".".join(parts[classes[0] :]) if classes else parts[-1]
    for place in ("", "export.", "experimental."):
        if has_estimator(f"{place}{public}"):
            return Resolution("ESTIMATOR_PRIVATE", f"{_ESTIMATOR}.{place}{public}")
    hint = "the public name in `hb.estimator`, or `hookbridge run`"
    return Resolution("ESTIMATOR_PRIVATE", hint=hint)


def _resolve_contrib(name: str, prefix: str, target: Target) -> Resolution | None:
    if not contrib_names.lives(name):
        return _gone(name)
    path = name[len("tf.contrib") :].lstrip(".")
    return Resolution("CONTRIB", _contrib(path, target))


def _contrib(path: str, target: Target) -> str:
    """The living name of a path below `tf.contrib` that lives."""
    carried = _joined(_CARRIED, path)
    source = "tf_slim" if path == "slim" else contrib_names.NAMES.get(path)
    if source is not None:
        return _public(source, "", target) or carried
    parts = path.split(".")
    for place in range(len(parts) - 1, 0, -1):
        name, rest = parts[place], ".".join(parts[place + 1 :])
        for source in contrib_names.AREAS.get(".".join(parts[:place]), ()):
            if source.startswith("ours."):
                *rooms, module = source.split(".")[1:]
                own = packaged("hookbridge.contrib", "areas", *rooms, f"{module}.py")
                if name in names_in(own):
                    return carried
            elif living := _public(source, name, target):
                return _joined(living, rest)
    return carried


def _public(source: str, name: str, target: Target) -> str:
    """The name in a public place of today; empty if it is not certainly there."""
    dotted = _joined(source, name)
    root, _, rest = dotted.partition(".")
    if root == "tf" and "__" not in dotted and target.has(dotted):
        # `tf.compat.v1.X` and `tf.X` are one object in many cases: the name stays v1.
        return dotted
    if root == "tf_slim" and _resolve_slim(dotted, root, target) is None:
        return dotted
    if root == "estimator" and has_estimator(rest, v1=True):
        outcome = _resolve_estimator(
            f"{_V1}.estimator.{rest}", f"{_V1}.estimator", target
        )
        return outcome.living if outcome is not None and outcome.living else ""
    return ""


def _resolve_tutorials(name: str, prefix: str, target: Target) -> Resolution | None:
    if name == _MNIST or name.startswith(f"{_MNIST}."):
        rest = name[len(_MNIST) + 1 :]
        return Resolution("TUTORIALS", _joined(_CARRIED, "learn.datasets.mnist", rest))
    if _MNIST.startswith(f"{name}."):
        return Resolution("TUTORIALS", hint="`hb.contrib.learn.datasets.mnist`")
    return _gone(name)


def _resolve_private_keras(name: str, prefix: str, target: Target) -> Resolution | None:
    """The public name: that of the same module, or one that ends in the same way."""
    public = name.replace("tensorflow.python.keras", "tf.keras", 1)
    place, _, last = public.rpartition(".")
    if not had_in_tf1(public):
        modules = table("public-1.15")["tf"]
        places = [f"tf.{m}" for m in modules if last in modules[m]]
        # `keras.utils.np_utils.to_categorical` is `tf.keras.utils.to_categorical`.
        near = [p for p in places if place.startswith(p) and p != "tf"]
        others = [p for p in places if p.startswith("tf.keras.")]
        if not near and not others:
            way = "the public name in `tf.keras`, or `hookbridge run`"
            return Resolution("KERAS_PRIVATE", hint=way)
        public = f"{max(near, key=len) if near else min(others, key=len)}.{last}"
    return Resolution("KERAS_PRIVATE", public)


def _resolve_private(name: str, prefix: str, target: Target) -> Resolution | None:
    """The name itself, if the target has it or nothing is known of it."""
    if today := _moved(name):
        outcome = _resolve_private(today, prefix, target)
        is_there = outcome is not None and outcome.code == "PRIVATE"
        return Resolution("PRIVATE_MOVED", today) if is_there else outcome
    module, _, last = name.rpartition(".")
    if living := _other_meaning(name, module, last, target):
        return Resolution("V1_NAME", living)
    return _resolve_in_place(name, target)


def _resolve_in_place(name: str, target: Target) -> Resolution:
    """What becomes of a private name whose module is where it was, if it is there."""
    lost, in_module, is_certain = missing_private(name, target)
    last = lost if lost and in_module else name.rpartition(".")[2]
    living = next(filter(target.has, _public_places(name, last)), "")
    if not lost:
        # `run` looks among the public names, too.
        if not is_certain and living and "." in living.removeprefix(f"{_V1}."):
            return Resolution("V1_NAME", living)
        return Resolution("PRIVATE", hint="the public name")
    if not living:
        return Resolution("PRIVATE_GONE", hint="code of your own")
    # `run` answers the names that a private module lost, not whole modules.
    if in_module:
        return Resolution("V1_NAME", living)
    return Resolution("PRIVATE_GONE", hint=f"`{living}`")


def _moved(name: str) -> str:
    """A name in a private module that has moved, as it is today; empty for others."""
    for old, today in MOVED.items():
        if f"{name}.".startswith(f"{old}."):
            return today + name[len(old) :]
    return ""


def _other_meaning(name: str, module: str, last: str, target: Target) -> str:
    """What a private name is today whose place has something else, or may have."""
    for old, living in OTHERS.items():
        if f"{name}.".startswith(f"{old}."):
            return living + name[len(old) :]
    layer = f"{_V1}.layers.{last}"
    return layer if module in LAYERS and target.has(layer) else ""


def _public_places(name: str, last: str) -> Iterator[str]:
    """Where a private name may be public today, in the order in which `run` asks."""
    for inside, place in PUBLIC.items():
        if inside in name:
            yield _joined(_V1, place, last)
    yield f"{_V1}.{last}"


def _resolve_slim(name: str, prefix: str, target: Target) -> Resolution | None:
    inside = name.partition(".")[2]
    if inside.removeprefix("layers.") in _SLIM_BROKEN:
        place = "" if inside.startswith("layers.") else "slim"
        return Resolution("SLIM_BROKEN", _joined(_CARRIED, place, inside))
    return (
        None
        if slim_has(name)
        else Resolution("MISSING", hint="tf_slim 1.1 does not have it")
    )


def _resolve_carried(name: str, prefix: str, target: Target) -> Resolution | None:
    old = name.replace(_CARRIED, "tf.contrib", 1)
    return None if contrib_names.lives(old) else _gone(old)


def _resolve_our_v1(name: str, prefix: str, target: Target) -> Resolution | None:
    return None if has_estimator(name[len(prefix) + 1 :], v1=True) else _NEVER


# The first row that has a prefix of the name decides.
_RESOLVERS = (
    (("tensorflow_estimator.python",), _resolve_private_estimator),
    (("tensorflow.python.estimator",), _resolve_private_estimator),
    (_ESTIMATORS, _resolve_estimator),
    (("tensorflow_estimator",), _resolve_private_estimator),
    (_OF_KERAS, _resolve_keras_estimator),
    (("tf.contrib",), _resolve_contrib),
    (("tf.examples", "tensorflow.examples"), _resolve_tutorials),
    (("tensorflow.python.keras",), _resolve_private_keras),
    (("tensorflow.python",), _resolve_private),
    (("tf_slim",), _resolve_slim),
    ((_CARRIED,), _resolve_carried),
    ((f"{_ESTIMATOR}.v1",), _resolve_our_v1),
)
_RESOLVER_OF_PREFIX = {
    prefix: resolver for prefixes, resolver in _RESOLVERS for prefix in prefixes
}


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def has_estimator(rest: str, v1: bool = False) -> bool:
    """Whether the last TensorFlow with Estimator has a name of it."""
    place = f"{_V1}.estimator" if v1 else "tf.estimator"
    return Target("2.15").has(_joined(place, rest))
