"""What becomes of a name of TensorFlow 1: the same for run, doctor, scan and rewrite.

A *replacement* is what to write today for a name that the target lacks.

To add a name, say in data/names.json where it is found today. A name that no list there
is for gets a branch of `resolve`, and its code a row in data/codes.json.
"""

from __future__ import annotations

from hookbridge.tf1_names import contrib_names, old_keras, private_names
from hookbridge.tf1_names.contrib_names import Candidate
from hookbridge.tf1_names.installed_names import has, missing
from hookbridge.tf1_names.outcome import (
    ESTIMATOR,
    OTHER_IN_V1,
    V1,
    Resolution,
    has_estimator,
    hint,
    join_name,
    without_replacement,
)
from hookbridge.tf1_names.removed_in_libraries import (
    is_there,
    removed_names,
    removed_part,
)
from hookbridge.tf1_names.syntax import is_below
from hookbridge.tf1_names.target import (
    Target,
    had_in_tf1,
    slim_has,
    slim_may_have,
    table,
    versions,
)

_RESTORED = contrib_names.RESTORED
_MNIST = "tf.examples.tutorials.mnist.input_data"
# Prefixes of Estimator's public names.
_ESTIMATORS = ("tf.estimator", f"{V1}.estimator", "tensorflow_estimator.estimator")
_OF_KERAS = ("tf.keras.estimator", f"{V1}.keras.estimator")
# Where hooks and their listeners were, or where TensorFlow defines them.
_OF_HOOKS = (*_ESTIMATORS, *table("names")["modules of hooks"])
_HOOKS = tuple(table("names")["hooks"])
# Functions of tf_slim that need private names of TensorFlow or Keras that were removed.
_SLIM_BROKEN = ("batch_norm", "optimize_loss")
# What each module has, and programs read something of.
_OF_MODULES = frozenset({"__dict__", "__doc__", "__file__", "__name__", "__path__"})
_NEVER = Resolution("MISSING", hint="TensorFlow 2.15 has no such name either")


def resolve(name: str, target: Target) -> Resolution | None:
    """Return what becomes of a canonical name; None if the target has it."""
    root = name.partition(".")[0]
    owner = name.rpartition(".")[0]
    if name in old_keras.VERSIONS:
        return old_keras.resolve(name, owner, target)
    if of_module := _of_module(name):
        return _resolve_of_module(*of_module, target)
    if part := removed_part(name):
        return _resolve_removed(name, part)
    if hook := _current_hook(name, target):
        return None if target.has(name) else Resolution("HOOK_NAME", hook)
    for prefix, resolver in _RESOLVER_OF_PREFIX.items():
        if is_below(name, prefix):
            return resolver(name, prefix, target)
    return _resolve_public(name, target) if root == "tf" else None


def _of_module(name: str) -> tuple[str, str] | None:
    """Return the module of `tf.contrib.rnn.__dict__.values`, and the rest; or None."""
    parts = name.split(".")
    for number, part in enumerate(parts[1:], 1):
        is_last = number == len(parts) - 1
        is_special = part.startswith("__") and part.endswith("__")
        if part in _OF_MODULES or (is_special and is_last):
            return ".".join(parts[:number]), ".".join(parts[number:])
    return None


def _resolve_of_module(module: str, rest: str, target: Target) -> Resolution | None:
    """Return what becomes of a `__name__`: a module has it wherever it is."""
    outcome = resolve(module, target)
    if outcome is None or not outcome.replacement:
        return outcome
    return outcome._replace(replacement=f"{outcome.replacement}.{rest}")


def _resolve_public(name: str, target: Target) -> Resolution | None:
    """Return what becomes of a name of `tf`."""
    if target.has(name):
        return old_keras.resolve_in_tensorflow(name)
    if not name.startswith("tf.compat.") and target.has_v1(name):
        return Resolution("V1_NAME", name.replace("tf.", f"{V1}.", 1))
    if had_in_tf1(name):
        return without_replacement(name)
    return Resolution("MISSING", hint=hint(name))


def _current_hook(name: str, target: Target) -> str:
    """Return the name in `tf.compat.v1.train` of a hook that was elsewhere, too."""
    module, _, attribute = name.rpartition(".")
    hook = f"{V1}.train.{attribute}"
    is_hook = module in _OF_HOOKS and attribute.endswith(_HOOKS)
    return hook if is_hook and target.has(hook) else ""


def _resolve_removed(name: str, part: str) -> Resolution | None:
    """Return what replaces a removed name of a library; None if this Python has it."""
    row = removed_names()[part]
    if is_there(part):
        return None
    if row.replacement:
        return Resolution("LOST_NAME", row.replacement + name[len(part) :])
    if row.is_restored and name == part:
        if row.is_method:
            way = way_of_attribute(name.rpartition(".")[2], row.hint)
            return Resolution("LOST_ATTRIBUTE", hint=way)
        return Resolution("LOST_FUNCTION", hint=row.hint)
    return Resolution("LIBRARY_NAME", hint=row.hint)


def way_of_attribute(method: str, otherwise: str) -> str:
    """Return what to write for a method that an object may not have any longer."""
    return f'`hb.legacy.attribute(..., "{method}")`, or {otherwise}'


def is_of_no_version(name: str) -> bool:
    """Return whether no known version of TensorFlow has a name of `tf`.

    A program of TensorFlow 1 never reaches such a name. Names from before 1.0 that have
    a hint, and what is below them, do not count.
    """
    for estimator in (f"{ESTIMATOR}.v1.", f"{ESTIMATOR}."):
        name = name.replace(estimator, "tf.estimator.", 1)
    name = name.replace(f"{V1}.", "tf.", 1)
    hints = table("names")["hints"]
    if had_in_tf1(name) or any(is_below(name, old) for old in hints):
        return False
    return not any(Target(version).has(name) for version in versions())


def _resolve_estimator(name: str, prefix: str, target: Target) -> Resolution | None:
    """Return the name in `hb.estimator`, or in a TensorFlow with Estimator."""
    if prefix.startswith("tf.") and target.has_estimator:
        if target.has(name):
            return None
        v1 = name.replace("tf.", f"{V1}.", 1)
        return Resolution("V1_NAME", v1) if target.has(v1) else Resolution("MISSING")
    inside = name[len(prefix) + 1 :]
    is_v1 = not has_estimator(inside)
    if is_v1 and not has_estimator(inside, v1=True):
        return (
            without_replacement(name)
            if had_in_tf1(f"tf.estimator.{inside}")
            else _NEVER
        )
    if prefix != "tf.estimator":  # the package itself has the names of v1, too
        is_v1 = is_v1 or inside.partition(".")[0] in ("", *OTHER_IN_V1)
    return Resolution("ESTIMATOR", join_name(ESTIMATOR, "v1" if is_v1 else "", inside))


def _resolve_keras_estimator(
    name: str, prefix: str, target: Target
) -> Resolution | None:
    if target.has_estimator:
        return None
    return Resolution("ESTIMATOR", join_name(ESTIMATOR, name[len(prefix) + 1 :]))


def _resolve_contrib(name: str, prefix: str, target: Target) -> Resolution | None:
    if not contrib_names.is_available(name):
        return without_replacement(name)
    path = name[len("tf.contrib") :].lstrip(".")
    return Resolution("CONTRIB", _contrib(path, target))


def _contrib(path: str, target: Target) -> str:
    """Return the replacement of an available path below `tf.contrib`."""
    if path == "slim":
        return "tf_slim"
    _, file, name = contrib_names.in_files(path)
    if file not in (None, name) and name in contrib_names.FILES_IN_AREAS:
        return join_name(_RESTORED, path)  # another file, whose names are in the area
    candidates = (
        candidate
        for candidate in contrib_names.candidates(path)
        if _may_have(candidate, target)
    )
    first = next(candidates, None)
    if first is not None and (public := _public(first, target)):
        return join_name(public, first.suffix)
    return join_name(_RESTORED, path)


def _may_have(candidate: Candidate, target: Target) -> bool:
    """Return whether a source has the name of a candidate, or nobody knows."""
    source, name, _ = candidate
    if not name:
        return True
    (root, inside), dotted = candidate.whole, candidate.whole.dotted
    if root == "ours":
        return has(source.file, name) is not False
    if root == "tf":
        return target.has(dotted)
    if root == "estimator":
        return has_estimator(inside, v1=True)
    return root != "tf_slim" or slim_may_have(dotted)


def _public(candidate: Candidate, target: Target) -> str:
    """Return the public name of a candidate; empty if it is not certainly there."""
    (root, inside), dotted = candidate.whole, candidate.whole.dotted
    if root == "tf" and "__" not in dotted and target.has(dotted):
        # `tf.compat.v1.X` and `tf.X` are one object in many cases: the name stays v1.
        return dotted
    if root == "tf_slim":
        # One without a name of its own was looked for in the files.
        is_known = slim_has(dotted) or not candidate.name
        is_sound = is_known and _resolve_slim(dotted, root, target) is None
        return dotted if is_sound else ""
    if root == "estimator" and has_estimator(inside, v1=True):
        outcome = _resolve_estimator(
            f"{V1}.estimator.{inside}", f"{V1}.estimator", target
        )
        return (
            outcome.replacement if outcome is not None and outcome.replacement else ""
        )
    return ""


def _resolve_tutorials(name: str, prefix: str, target: Target) -> Resolution | None:
    if name == _MNIST or name.startswith(f"{_MNIST}."):
        inside = name[len(_MNIST) + 1 :]
        return Resolution(
            "TUTORIALS", join_name(_RESTORED, "learn.datasets.mnist", inside)
        )
    if _MNIST.startswith(f"{name}."):
        return Resolution("TUTORIALS", hint="`hb.contrib.learn.datasets.mnist`")
    return without_replacement(name)


def _resolve_slim(name: str, prefix: str, target: Target) -> Resolution | None:
    """Return what replaces a name of tf_slim that fails or is not there; or None."""
    inside = name.partition(".")[2]
    if inside.removeprefix("layers.") in _SLIM_BROKEN:
        area = "" if inside.startswith("layers.") else "slim"
        return Resolution("SLIM_BROKEN", join_name(_RESTORED, area, inside))
    # Not all names of its files are listed: the files tell, if they are there.
    if slim_has(name) or not missing(name).rest:
        return None
    return Resolution("MISSING", hint="tf_slim 1.1 does not have it")


def _resolve_restored(name: str, prefix: str, target: Target) -> Resolution | None:
    old = contrib_names.as_in_tf1(name)
    return None if contrib_names.is_available(old) else without_replacement(old)


def _resolve_our_v1(name: str, prefix: str, target: Target) -> Resolution | None:
    return None if has_estimator(name[len(prefix) + 1 :], v1=True) else _NEVER


# The first row whose prefix a name has decides.
_RESOLVER_OF_PREFIX = {
    "tensorflow_estimator.python": private_names.resolve_estimator,
    "tensorflow.python.estimator": private_names.resolve_estimator,
    **dict.fromkeys(_ESTIMATORS, _resolve_estimator),
    "tensorflow_estimator": private_names.resolve_estimator,
    **dict.fromkeys(_OF_KERAS, _resolve_keras_estimator),
    "tf.contrib": _resolve_contrib,
    **dict.fromkeys(("tf.examples", "tensorflow.examples"), _resolve_tutorials),
    "tensorflow.python.keras": private_names.resolve_keras,
    "tensorflow.python": private_names.resolve_private,
    old_keras.KERAS: old_keras.resolve,
    **dict.fromkeys(private_names.FILES, private_names.resolve_file),
    "tf_slim": _resolve_slim,
    _RESTORED: _resolve_restored,
    f"{ESTIMATOR}.v1": _resolve_our_v1,
    f"{ESTIMATOR}.python": private_names.resolve_our_estimator,
}
