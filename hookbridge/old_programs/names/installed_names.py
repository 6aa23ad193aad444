"""What the source of an installed package certainly lacks; nothing is imported."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hookbridge.ground import compat
from hookbridge.old_programs.names.parsing import parsed
from hookbridge.old_programs.names.target import Target

# A module with one of these may have names that its text does not show.
_OPAQUE = re.compile(
    r"^[ \t]*(?:def )?__getattr__\b|__getattr__,|\bsys\.modules\[|\bglobals\(\)[.\[]"
    r"|\bsetattr\(sys\b|\bvars\(\)|^exec\(|\.attach\w*\(|\bmodule_wrapper\b"
    r"|=[ \t]*globals\(\)",
    re.M,
)
# What binds names at the top of a module, and inside of `try` and `if` there. It is
# searched for, since parsing takes seconds for the long files of TensorFlow.
_BLOCK = re.compile(
    r"^(?:if|elif|else|try|except|finally|with|for|while)\b[^\n]*:[^\n]*\n"
    r"((?:[ \t]+[^\n]*\n|\n)+)",
    re.M,
)
_DEFINED = re.compile(r"^(?:async )?(?:def|class)[ \t]+(\w+)", re.M)
_ASSIGNED = re.compile(r"^\(?(\w[\w, \t]*?)\)?[ \t]*(?::[^=\n]+)?=(?!=)", re.M)
_ANNOTATED = re.compile(r"^(\w+)[ \t]*:", re.M)
_IMPORTED = re.compile(
    r"^(?:from[ \t]+\S+[ \t]+)?import[ \t]+(\([^)]*\)|(?:[^\n\\]|\\\n)*)", re.M
)
_STAR = re.compile(r"^[ \t]*from[ \t]+(\S+)[ \t]+import[ \t]+\(?\*", re.M)


class Missing(NamedTuple):
    """The part of a dotted name that is certainly not there.

    Attributes:
      rest: that part and all after it; empty if nothing is missing for certain.
      in_module: whether the module before it is there and lacks the name.
      is_certain: False if nobody can tell whether anything is missing.
    """

    rest: str = ""
    in_module: bool = False
    is_certain: bool = True


_UNKNOWN = Missing(is_certain=False)


def missing(name: str, num_modules: int = 1) -> Missing:
    """What an installed package lacks of a dotted name, which begins with its name.

    Nothing is known if the package itself is not installed. Attributes of classes and
    functions are not looked at.

    Args:
      name: the dotted name.
      num_modules: the number of its parts that have to be modules: an import of them
        asks for files, and no `__getattr__` helps.
    """
    root, *parts = name.split(".")
    place = package(root)
    return _UNKNOWN if place is None else missing_below(place, parts, num_modules - 1)


def missing_below(place: Path, parts: Sequence[str], num_modules: int) -> Missing:
    """The same for the parts of a name below a package in a folder, or a module."""
    for number, part in enumerate(parts):
        rest = ".".join(parts[number:])
        if place.is_file():
            return _answer(has(place, part), Missing(rest, True))
        inside = place / part
        if (inside / "__init__.py").is_file() or (
            inside.is_dir() and not any(map(_is_built, place.glob(f"{part}.*")))
        ):
            place = inside
        elif (file := inside.with_suffix(".py")).is_file():
            place = file
        else:
            is_module = number < num_modules
            return _answer(_package_has(place, part, is_module), Missing(rest))
    return Missing()


def _answer(is_there: bool | None, lack: Missing) -> Missing:
    """Nothing is missing if the part is there; `lack` is, if it certainly is not."""
    if is_there is None:
        return _UNKNOWN
    return Missing() if is_there else lack


def _package_has(folder: Path, part: str, is_module: bool) -> bool | None:
    """Whether a package has a part without a file of Python; None if nobody can tell.

    `is_module` tells that the part has to be a module.
    """
    init = folder / "__init__.py"
    there = any(map(_is_built, folder.glob(f"{part}.*"))) or has(init, part)
    text = _text(init)
    if there or not is_module or text is None:
        return there
    return None if text.adds_modules else False


def _is_built(file: Path) -> bool:
    """Whether Python can import a file in another language, or one without its text."""
    return file.suffix in (".so", ".pyd", ".pyc")


def missing_private(name: str, target: Target) -> Missing:
    """What the target lacks of a private name below `tensorflow`, as far as is known.

    No list of private names is kept: for another target than the installed TensorFlow
    nothing is known.
    """
    installed = ".".join(map(str, compat.installed_tf_version()))
    return missing(name) if target.version == installed else _UNKNOWN


@functools.cache
def package(root: str) -> Path | None:
    """The folder, or the only file, of an installed package; None if it has none."""
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ())
    if places:
        # A package in several places has no file of its own.
        return Path(places[0]) if spec.origin else None
    file = Path(spec.origin or "")
    return file if file.suffix == ".py" else None


class _Text(NamedTuple):
    """What the text of a module shows without being parsed."""

    is_opaque: bool  # whether it may have names that it does not show
    adds_modules: bool  # whether it may add modules that have no files
    bound: frozenset[str]  # the names that it binds
    starred: tuple[str, ...]  # modules all of whose names it imports


@functools.cache
def has(file: Path, name: str) -> bool | None:
    """Whether a module has a name; None if its text does not show it."""
    return _has(file, name, set())


def _has(file: Path, name: str, asked: set[Path]) -> bool | None:
    """The same; of the modules that were asked already nothing more comes."""
    asked.add(file)
    text = _text(file)
    if text is None:
        return False
    if name in text.bound:
        return True
    others: set[bool | None] = {None} if text.is_opaque else set()
    if not name.startswith("_"):
        others |= {_in_starred(file, star, name, asked) for star in text.starred}
    if True in others:
        return True
    return None if None in others else False


def _in_starred(file: Path, starred: str, name: str, asked: set[Path]) -> bool | None:
    """Whether `from starred import *` in a file binds a name."""
    dots = len(starred) - len(starred.lstrip("."))
    parts = [part for part in starred.split(".") if part]
    place = file.parents[dots - 1] if dots else package(parts.pop(0))
    if place is None:
        return None  # not installed
    place = place.joinpath(*parts)
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    # A module in another language shows nothing.
    if source in asked:
        return False
    return _has(source, name, asked) if source.is_file() else None


@functools.cache
def _text(file: Path) -> _Text | None:
    """None if the file is not there."""
    if not file.is_file():
        return None
    text = file.read_text("utf-8", "replace")
    blocks = [inspect.cleandoc(f"\n{block}") for block in _BLOCK.findall(text)]
    names: set[str] = set()
    for part in (text, *blocks):
        names.update(_DEFINED.findall(part), _ANNOTATED.findall(part))
        for assigned in _ASSIGNED.findall(part):
            names.update(re.findall(r"\w+", assigned))
        for imported in _IMPORTED.findall(part):
            items = re.sub(r"#[^\n]*|[()\\\s]+", " ", imported).split(",")
            names.update(
                words[-1].partition(".")[0] for i in items if (words := i.split())
            )
    return _Text(
        bool(_OPAQUE.search(text)),
        "sys.modules" in text or "meta_path" in text,
        frozenset(names),
        tuple(_STAR.findall(text)),
    )


@functools.cache
def names_in(file: Path) -> frozenset[str]:
    """The names that a module binds at its top level."""
    return frozenset(_bound(parsed(file.read_bytes()).body))


def _bound(body: Iterable[ast.AST]) -> Iterator[str]:
    """The names that statements bind, in blocks too, but not inside definitions."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id
        else:
            yield from _bound(ast.iter_child_nodes(node))
