"""The public names of a TensorFlow, from a list; TensorFlow is not imported."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from hookbridge import errors
from hookbridge.ground.imports import installed
from hookbridge.ground.imports.package_files import files_below, packaged
from hookbridge.tf1_names.syntax import is_below

DATA = packaged("hookbridge.tf1_names", "data")
RELEASED = "2.21"  # the newest release; the names of its candidate are known too
_V1 = "compat.v1"
Tables: TypeAlias = Mapping[str, Mapping[str, list[str] | None]]


@functools.cache
def table(name: str) -> Any:
    """Return one of the lists of names and what is known of them."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


@functools.cache
def versions() -> tuple[str, ...]:
    """Return the TensorFlow versions whose names are known, oldest first."""
    files = [name.removesuffix(".json") for name in files_below(DATA, ".json")]
    names = [n.partition("-")[2] for n in files if n.startswith("tensorflow-")]
    return tuple(sorted(names, key=lambda v: [int(n) for n in v.split(".")]))


def newest_here() -> str:
    """Return the newest release, or the next one's candidate if installed."""
    candidate = versions()[-1]
    version = installed.tensorflow()
    is_here = version is not None and candidate == ".".join(map(str, version))
    return candidate if is_here else RELEASED


NEWEST = newest_here()


def target_in_words(version: str) -> str:
    """Return a target for a reader, who may have another TensorFlow than this one."""
    here = ".".join(map(str, installed.tensorflow() or ()))
    text = f"target TensorFlow {version}"
    if here in ("", version):
        return text
    named = f"`--target={here}`" if here in versions() else here
    return f"{text}; installed is {named}"


class Target:
    """A TensorFlow that code has to run on."""

    def __init__(self, version: str) -> None:
        if version not in versions():
            raise errors.InvalidArgumentError(
                f"Received the target {version!r}; expected one of "
                f"{', '.join(versions())}."
            )
        self.version = version
        # For tf and tf.compat.v1: module -> its names, or None if they are not known.
        self._modules: Tables = table(f"tensorflow-{version}")

    def has(self, name: str) -> bool:
        """Return whether this TensorFlow has a canonical name, such as `tf.X`.

        What follows the first class or function in the name is ignored: attributes of
        classes and functions are not listed.
        """
        inside, kind = name.partition(".")[2], "v2"
        if is_below(inside, _V1):
            inside, kind = inside[len(_V1) + 1 :], "v1"
        removed: list[str] = table("names")["removed where names are not listed"]
        if any(is_below(inside, removed_name) for removed_name in removed):
            return False
        return _has(self._modules[kind], inside)

    @property
    def has_estimator(self) -> bool:
        """Return whether this TensorFlow has Estimator.

        It has Keras 2 as `tf.keras` then.
        """
        return self.has("tf.estimator")

    @property
    def needs_summary_place(self) -> bool:
        """Return whether a `SummarySaverHook` without a place is an error (2.22)."""
        return versions().index(self.version) >= versions().index("2.22")

    def has_v1(self, name: str) -> bool:
        """Return whether this TensorFlow has `tf.X` as `tf.compat.v1.X`."""
        return self.has(name.replace("tf.", f"tf.{_V1}.", 1))


def _has(names: Mapping[str, list[str] | None], rest: str) -> bool:
    """Return whether a table of modules has a name.

    What follows a class is not listed.
    """
    module = ""
    parts = rest.split(".") if rest else ()
    for part in parts:
        members = names.get(module, ())
        if members is None:
            return True
        if part not in members and not part.startswith("__"):
            return False
        module = f"{module}.{part}" if module else part
        if module not in names:
            return True
    return True


def had_in_tf1(name: str) -> bool:
    """Return whether TensorFlow 1.15 had a public name, or one of `tf.contrib`."""
    inside = name.removeprefix("tf.").removeprefix("compat.v1.")
    if f"{inside}.".startswith("contrib."):
        return _has(table("public-1.15")["contrib"], inside[len("contrib.") :])
    return _has(table("public-1.15")["tf"], inside)


def slim_may_have(name: str) -> bool:
    """Return whether tf_slim has a name, or has it in a module that is not listed."""
    module = name.partition(".")[2].rpartition(".")[0]
    return slim_has(name) or module not in table("tf_slim-1.1")


def slim_has(name: str) -> bool:
    """Return whether tf_slim has a name."""
    inside = name.partition(".")[2]
    # The names of these packages are not listed.
    is_package = inside.partition(".")[0] in ("nets", "data")
    return is_package or _has(table("tf_slim-1.1"), inside)
