"""What becomes of a name in a private module of TensorFlow, Keras or Estimator."""

from __future__ import annotations

from collections.abc import Iterator

from hookbridge.ground import compat
from hookbridge.tf1_names.installed_names import missing, missing_private
from hookbridge.tf1_names.outcome import (
    ESTIMATOR,
    OTHER_IN_V1,
    V1,
    Resolution,
    has_estimator,
    join_name,
    without_replacement,
)
from hookbridge.tf1_names.syntax import is_below, with_beginning
from hookbridge.tf1_names.target import Target, had_in_tf1, table

# A part of a private module's name, and the module of `tf.compat.v1` whose public names
# replace the removed ones.
PUBLIC: dict[str, str] = table("names")["public"]
# Private modules that still exist, but may use another Keras than the program's: the
# names of `tf.compat.v1.layers` come before theirs.
LAYERS = frozenset(table("names")["modules of layers"])
# Private names that are there, but are something else than in TensorFlow 1.
OTHERS: dict[str, str] = table("names")["private"]
# Private modules that have another place today.
MOVED: dict[str, str] = table("names")["moved private modules"]
# Packages that TensorFlow takes away from its root once it is imported.
HIDDEN_PACKAGES = ("tensorflow.python", "tensorflow.core")
# Packages of TensorFlow beside `tensorflow.python` whose names are those of files.
FILES: tuple[str, ...] = tuple(table("names")["private files"])
# The modules of these that TensorFlow removed, for targets that are not installed.
_REMOVED_FILES: list[str] = table("names")["removed modules"]
# Modules of Keras 1.15 -> those of Keras 2 that have their names today. Where a dot
# ends the name, the modules inside of it are not meant.
_MOVED_IN_KERAS: dict[str, list[str]] = table("names")["moved modules of keras"]
_OF_KERAS = {
    f"tf.{module}"
    for module in table("public-1.15")["tf"]
    if module.startswith("keras.") and module != "keras.backend"
}
# Modules in `tensorflow.python.tpu` that handed on those of Estimator, until 2.15.
OF_TPU = ("error_handling", "tpu_config", "tpu_context", "tpu_estimator", "util")
_TPU = "tensorflow.python.tpu"
_OURS = f"{ESTIMATOR}.python"
_OF_ESTIMATOR = ".python.estimator."


def resolve_estimator(name: str, prefix: str, target: Target) -> Resolution | None:
    """Return the public name for a private name of Estimator, or its place."""
    parts = name.split(".")
    classes = [i for i, part in enumerate(parts) if part[:1].isupper()]
    public = ".".join(parts[classes[0] :]) if classes else parts[-1]
    inside = name.partition(_OF_ESTIMATOR)[2]
    # The `RunConfig` of TPUs is another one, and `export` a private module.
    if "tpu" not in parts and public != "export":
        for room in ("", "export.", "experimental."):
            if has_estimator(f"{room}{public}"):
                v1 = "v1." if public.partition(".")[0] in OTHER_IN_V1 else ""
                replacement = f"{ESTIMATOR}.{v1}{room}{public}"
                return Resolution("ESTIMATOR_PRIVATE", replacement)
    if not inside:
        return Resolution("ESTIMATOR_PRIVATE", hint="the public name in `hb.estimator`")
    replacement = f"{_OURS}.{inside}"
    outcome = resolve_our_estimator(replacement, _OURS, target)
    return outcome or Resolution("ESTIMATOR_PRIVATE", replacement)


def estimator_of_tpu(name: str) -> str:
    """Return the name in Estimator of a name of `tensorflow.python.tpu`, or empty."""
    if any(is_below(name, f"{_TPU}.{module}") for module in OF_TPU):
        return name.replace(_TPU, "tensorflow_estimator.python.estimator.tpu", 1)
    return ""


def resolve_our_estimator(name: str, prefix: str, target: Target) -> Resolution | None:
    """Resolve a name below `hb.estimator.python`; None if the last Estimator has it."""
    full_name = name.replace(_OURS, "tensorflow_estimator.python.estimator", 1)
    absent = missing(full_name).rest
    return Resolution("PRIVATE_GONE", hint="your own code") if absent else None


def resolve_keras(name: str, prefix: str, target: Target) -> Resolution | None:
    """Return the public name: of the same module, or with the same ending."""
    if name in OTHERS:
        return Resolution("KERAS_PRIVATE", OTHERS[name])
    public = name.replace("tensorflow.python.keras", "tf.keras", 1)
    if not had_in_tf1(public):
        public = _elsewhere_in_keras(public)
    if public and (target.has(public) or target.has_v1(public)):
        return Resolution("KERAS_PRIVATE", public)
    if _is_removed_from_keras(name, target):
        return Resolution("PRIVATE_GONE", hint="your own code")
    way = "the public name in `tf.keras`, or `hookbridge run`"
    return Resolution("KERAS_COPY", hint=way)


def _elsewhere_in_keras(name: str) -> str:
    """Return the public name of what TensorFlow 1 had in another module; or none."""
    module, _, attribute = name.rpartition(".")
    modules = table("public-1.15")["tf"]
    # A module elsewhere that has the name of this one is another one.
    places = [
        f"tf.{m}"
        for m in modules
        if attribute in modules[m] and join_name(m, attribute) not in modules
    ]
    # `keras.utils.np_utils.to_categorical` is `tf.keras.utils.to_categorical`.
    enclosing = [p for p in places if module.startswith(p) and p != "tf."]
    if enclosing:
        return f"{max(enclosing, key=len)}.{attribute}"
    # Nor has any other module a function of `backend`, which takes a tensor.
    in_keras = [p for p in places if p in _OF_KERAS]
    # A module that is public itself has no names under another one.
    if not in_keras or module.removeprefix("tf.") in modules:
        return ""
    return f"{min(in_keras, key=len)}.{attribute}"


def places_in_keras(name: str, package: str) -> list[str]:
    """Return where `run` looks for what was below `tensorflow.python.keras`, in order.

    Args:
      name: the private name of a module, or of something in one.
      package: the package of Keras 2.
    """
    suffix = name.removeprefix("tensorflow.python.keras")
    moved = [f"{package}.src.{moved_to}" for moved_to in moved_in_keras(suffix)]
    return [f"{package}.src{suffix}", f"{package}{suffix}", *moved, name]


def moved_in_keras(rest: str) -> list[str]:
    """Return where modules of Keras 2 have today what was elsewhere, below its source.

    Args:
      rest: the name of a module below `keras`, with the dot before it.
    """
    candidates = []
    for old, places in _MOVED_IN_KERAS.items():
        module = old.rstrip(".")
        after = rest[len(module) + 1 :]
        is_other = old != module and after.count(".") > 1
        if f"{rest}.".startswith(f".{module}.") and not is_other:
            candidates += [f"{new}{after}" for new in places]
    return candidates


def _is_removed_from_keras(name: str, target: Target) -> bool:
    """Return whether a private name of Keras is certainly in none of its places."""
    is_own = compat.installed_tf_version() > compat.LAST_WITH_KERAS2
    places = places_in_keras(name, "tf_keras" if is_own else "keras")
    return all(missing_private(candidate, target).rest for candidate in places)


def resolve_private(name: str, prefix: str, target: Target) -> Resolution | None:
    """Return the name itself, if the target has it or nothing is known of it."""
    if current := with_beginning(name, MOVED):
        outcome = resolve_private(current, prefix, target)
        is_there = outcome is not None and outcome.code == "PRIVATE"
        return Resolution("PRIVATE_MOVED", current) if is_there else outcome
    if not target.has_estimator and (in_estimator := estimator_of_tpu(name)):
        return resolve_estimator(in_estimator, prefix, target)
    module, _, attribute = name.rpartition(".")
    if replacement := _other_meaning(name, module, attribute, target):
        return Resolution("V1_NAME", replacement)
    return _resolve_in_place(name, target)


def resolve_file(name: str, prefix: str, target: Target) -> Resolution | None:
    """Resolve a name outside of `tensorflow.python`; None if it may be there."""
    path = name.replace("tf.", "tensorflow.", 1)
    is_listed = any(is_below(name, file) for file in _REMOVED_FILES)
    return (
        without_replacement(name)
        if is_listed or missing_private(path, target).rest
        else None
    )


def _resolve_in_place(name: str, target: Target) -> Resolution:
    """Return what becomes of a private name whose module is where it was."""
    absent, in_module, is_certain = missing_private(name, target)
    attribute = absent if absent and in_module else name.rpartition(".")[2]
    replacement = next(filter(target.has, _public_places(name, attribute)), "")
    if not absent:
        # `run` looks among the public names, too.
        if not is_certain and replacement and "." in replacement.removeprefix(f"{V1}."):
            return Resolution("V1_NAME", replacement)
        return Resolution("PRIVATE", hint="the public name")
    if not replacement:
        return Resolution("PRIVATE_GONE", hint="your own code")
    # `run` answers removed names of private modules, not whole modules.
    if in_module:
        return Resolution("V1_NAME", replacement)
    return Resolution("PRIVATE_GONE", hint=f"`{replacement}`")


def _other_meaning(name: str, module: str, last: str, target: Target) -> str:
    """Return what a private name is now whose old place may have another."""
    layer = f"{V1}.layers.{last}"
    is_layer = module in LAYERS and target.has(layer)
    return with_beginning(name, OTHERS) or (layer if is_layer else "")


def _public_places(name: str, last: str) -> Iterator[str]:
    """Yield where a private name may be public, in the order in which `run` looks."""
    for inside, public_module in PUBLIC.items():
        if inside in name:
            yield join_name(V1, public_module, last)
    yield f"{V1}.{last}"
