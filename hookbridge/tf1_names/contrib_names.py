"""Where each name of `tf.contrib` is found today, and which names are available.

A name is *available* if something today can replace it; its *source* says where that
is.

A source begins with `tf` (TensorFlow's public names), `tf_slim`, `tensorboard`,
`estimator` (what `tf.compat.v1.estimator` had), `estimator_python` (a private module of
Estimator), `private` (a row of `hookbridge.ground.compat`) or `ours` (a module of the
room `hookbridge/contrib/areas`). TensorFlow is not imported here.

The sources are in data/names.json. The list of available names beside it is written by
tests/run/write_living_names.py from them and the names that TensorFlow 1.15 had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hookbridge.ground import compat
from hookbridge.ground.imports.package_files import packaged
from hookbridge.tf1_names.installed_names import certainly_has, has, missing
from hookbridge.tf1_names.outcome import join_name
from hookbridge.tf1_names.syntax import beginnings, is_below, with_beginning
from hookbridge.tf1_names.target import DATA, table

FILE = DATA / "contrib-1.15.json"
# What a rewrite writes for `tf.contrib`, and for the removed modules of it.
RESTORED = "hookbridge.contrib"
REMOVED = f"{RESTORED}.removed"
_ESTIMATOR = "tensorflow_estimator.python.estimator"
_ROOTS = frozenset(
    {
        "estimator",
        "estimator_python",
        "ours",
        "private",
        "tensorboard",
        "tf",
        "tf_slim",
    }
)


class Source(NamedTuple):
    """Where a name of `tf.contrib` is found today.

    Attributes:
      root: whose name it is; see the sentence on sources above.
      name: the dotted name in that; empty for all of it.
    """

    root: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Source:
        """Read a source as the table has it: `tf.data`, `ours.seq2seq.beams`.

        Raises:
          ValueError: it begins with something else.
        """
        root, _, name = text.partition(".")
        if root not in _ROOTS:
            raise ValueError(f"unknown source {text!r}")
        return cls(root, name)

    @property
    def dotted(self) -> str:
        """The source as the table has it."""
        return join_name(self.root, self.name)

    @property
    def file(self) -> Any:
        """The file of a module of ours."""
        *rooms, module = self.name.split(".")
        return packaged("hookbridge.contrib", "areas", *rooms, f"{module}.py")

    def below(self, name: str) -> Source:
        """Return the source of a name in this one."""
        return Source(self.root, join_name(self.name, name))


class Candidate(NamedTuple):
    """A place where a path below `tf.contrib` may be found today.

    Attributes:
      source: the source of its area, or of the path itself.
      name: the name in that; empty if the source is what is meant.
      suffix: what follows the name in the path: `TRAIN` of `learn.ModeKeys.TRAIN`.
    """

    source: Source
    name: str = ""
    suffix: str = ""

    @property
    def whole(self) -> Source:
        """The source of the name itself."""
        return self.source.below(self.name)


# Area -> where its names are looked for, in this order.
AREAS: dict[str, tuple[Source, ...]] = {
    area: tuple(map(Source.parse, sources))
    for area, sources in table("names")["contrib areas"].items()
}
# Names that are not where the rest of their area is; also those that a file had and
# its area did not. Classes of ours that derive from Keras 2 or Estimator are among
# them: these are loaded only when one is needed.
NAMES: dict[str, Source] = {
    name: Source.parse(source)
    for name, source in table("names")["contrib names"].items()
}
# Area -> packages of tf_slim with the same files, whose private names stayed, too.
_FILES_OF_SLIM: dict[str, list[str]] = table("names")["files of contrib in tf_slim"]
# Area and file -> the private module of TensorFlow or Estimator whose names the file
# handed on.
FILES_IN_PRIVATE_MODULES: dict[str, Source] = {
    file: Source.parse(source)
    for file, source in table("names")["files of contrib in private modules"].items()
}
# The last parts of the names of its files, of which programs import private ones too.
FILES_IN_AREAS: frozenset[str] = frozenset(table("names")["files of contrib"])
# Modules of releases before 1.15 that this one does not have.
_EARLIER: frozenset[str] = frozenset(table("names")["earlier modules of contrib"])


def areas_above(path: str) -> bool:
    """Return whether a path is an area, or above an area or a name of `NAMES`."""
    return not path or any(is_below(n, path) for n in (*AREAS, *NAMES))


def as_in_tf1(name: str) -> str:
    """Return a name of `hookbridge.contrib` as it was; other names unchanged."""
    restored = dict.fromkeys((REMOVED, RESTORED), "tf.contrib")
    return with_beginning(name, restored) or name


def was_module(path: str) -> bool:
    """Return whether a path below `tf.contrib` was a module, or may have been a file.

    A name in lower case in the files of an area may have been a file or a function:
    nobody knows, once the area is removed.
    """
    _, file, name = in_files(path)
    if file is not None:
        return name.islower() and not name.startswith("_")
    modules: dict[str, list[str]] = table("public-1.15")["contrib"]
    return (
        path in modules
        or path in modules[""]
        or path in table("public-1.15")["imports of contrib"]
        or path in _EARLIER
        or path.endswith(".python")
    )


def names() -> dict[str, list[str]]:
    """Return the names that are available in each area."""
    listed: dict[str, list[str]] = table("contrib-1.15")
    return listed


def listed_names(path: str) -> list[str]:
    """Return the names of an area, and the areas below it: what a program may list."""
    inside = f"{path}." if path else ""
    below = [area[len(inside) :] for area in names() if area.startswith(inside)]
    return sorted({*names().get(path, ()), *(a.partition(".")[0] for a in below)})


def candidates(path: str) -> Iterator[Candidate]:
    """Yield where a path below `tf.contrib` may be found today, in order.

    `run` and rewrites take the first one that has the name. The files of an area were
    removed: a name of any file is looked for in an area that is called like the file,
    then in the whole area, then in a file of tf_slim.

    Args:
      path: the path: `slim.conv2d`, or `layers.python.layers.initializers.xavier`.
    """
    area, file, name = in_files(path)
    if file is None:
        yield from _candidates_in_areas(path)
        return
    owner, _, attribute = path.rpartition(".")
    if path in NAMES:
        yield Candidate(NAMES[path])
    elif owner in NAMES:  # after a class anything may follow
        yield Candidate(NAMES[owner], suffix=attribute)
    for module in (f"{area}.{file}", area):
        in_areas = _candidates_in_areas(f"{module}.{name}")
        yield from (candidate for candidate in in_areas if not candidate.suffix)
    if in_file := in_same_file(area, file, name):
        yield Candidate(Source.parse(in_file))


def in_files(path: str) -> tuple[str, str | None, str]:
    """Return the area of a name in its files, the last file, and the name.

    The file is None if the path is not one of a file, and empty for `area.python.name`.
    """
    area, has_files, files = path.partition(".python.")
    if not has_files:
        return path, None, ""
    *_, file, name = ["", *files.split(".")]
    return area, file, name


def _candidates_in_areas(path: str) -> Iterator[Candidate]:
    """Yield where a path that does not go through files may be found."""
    for full, suffix in beginnings(path):
        if full in NAMES:
            yield Candidate(NAMES[full], suffix=suffix)
            return
        area, _, name = full.rpartition(".")
        for source in AREAS.get(area, ()):
            yield Candidate(source, name, suffix)


def is_available(name: str) -> bool:
    """Return whether a name such as `tf.contrib.slim.conv2d` is available."""
    path = name.removeprefix("tf.contrib").lstrip(".")
    if areas_above(path):
        return True
    area, parent, attribute = in_files(path)
    if parent is not None:
        # Any file of an area can be imported; each name in it is looked up by itself.
        return (
            path.rpartition(".")[0] in NAMES  # after a class anything may follow
            or (areas_above(area) and attribute in FILES_IN_AREAS)
            or any(
                f"{module}.{attribute}" in NAMES or attribute in names().get(module, ())
                for module in (area, f"{area}.{parent}")
            )
            or bool(in_same_file(area, parent, attribute))
        )
    # The innermost area above the name decides; after a class anything may follow.
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        above = ".".join(parts[:length])
        if above in NAMES:
            return not _lacks(NAMES[above], parts[length])
        if above in names():
            return parts[length] in names()[above]
    return False


def _lacks(source: Source, name: str) -> bool:
    """Return whether a source is a module of ours without a name."""
    is_module = source.root == "ours" and source.file.is_file()
    return is_module and has(source.file, name) is False


def _is_file(module: str) -> bool:
    """Return whether an installed module has that name."""
    return not missing(module, module.count(".") + 1).rest


def module_of_file(path: str) -> Source | None:
    """Return the private module of a file, or None; a function may have its name."""
    area, file, name = in_files(path)
    return (
        None if file in (None, name) else FILES_IN_PRIVATE_MODULES.get(f"{area}.{name}")
    )


def in_same_file(area: str, file: str, name: str) -> str:
    """Return where another package has what a file of an area had.

    Args:
      area: the area, such as `layers`.
      file: the last part of the file's name, such as `utils`.
      name: what is looked up in it.

    Returns:
      The source, as the tables have it; empty if no package certainly has it.
    """
    source = FILES_IN_PRIVATE_MODULES.get(f"{area}.{file}")
    if source is None:
        return _in_file_of_slim(area, file, name)
    if source.root == "private":
        is_there = certainly_has(compat.PRIVATE[source.name].path, name)
    else:
        # Where Estimator is not installed, that it is needed is said first.
        module = f"{_ESTIMATOR}.{source.name}"
        is_there = not missing(f"{module}.{name}", module.count(".") + 1).rest
    return source.below(name).dotted if is_there else ""


def _in_file_of_slim(area: str, file: str, name: str) -> str:
    """Return the name in tf_slim of what a file of an area had; empty if it has none.

    Nothing is known where tf_slim is not installed.
    """
    packages = _FILES_OF_SLIM.get(area, ()) if file else ()
    for package in packages:
        if name != file and _is_file(f"{package}.{name}"):
            continue  # another file, which this one imports
        module = f"{package}.{file}"
        if certainly_has(module, name):
            return f"{module}.{name}"
    return ""
