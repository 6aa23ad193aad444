"""What Python and other libraries have lost, and old programs use."""

from __future__ import annotations

import builtins
import html
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import types
from collections.abc import Collection
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.contrib.private_modules import KERAS, keras2_package
from hookbridge.ground.extras import is_installed
from hookbridge.ground.patching import InstanceMethods
from hookbridge.old_programs.names.lost_in_libraries import LostName, lost_names
from hookbridge.old_programs.run.given_back import lost_methods, lost_pictures


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` returned until Python 3.11."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Any) -> ArgSpec:
    """`inspect.getargspec`."""
    return ArgSpec(*inspect.getfullargspec(func)[:4])


def asscalar(a: Any) -> Any:
    """`numpy.asscalar`."""
    return importlib.import_module("numpy").asarray(a).item()


def asfarray(a: Any, dtype: Any = None) -> Any:
    """`numpy.asfarray`: an array of floats."""
    numpy = importlib.import_module("numpy")
    if dtype is None or not numpy.issubdtype(dtype, numpy.inexact):
        dtype = numpy.float64
    return numpy.asarray(a, dtype=dtype)


def alen(a: Any) -> int:
    """`numpy.alen`: the length of the first axis, 1 for a number."""
    return len(importlib.import_module("numpy").atleast_1d(a))


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """`numpy.in1d`: `numpy.isin` of what is laid out flat."""
    numpy = importlib.import_module("numpy")
    return numpy.isin(numpy.ravel(ar1), ar2, assume_unique, invert)


def msort(a: Any) -> Any:
    """`numpy.msort`: a copy, sorted along its first axis."""
    return importlib.import_module("numpy").sort(a, axis=0)


def sctypes() -> dict[str, list[type]]:
    """`numpy.sctypes`: the kinds of numbers, and their types."""
    numpy = importlib.import_module("numpy")
    names = {
        "int": "int8 int16 int32 int64",
        "uint": "uint8 uint16 uint32 uint64",
        "float": "float16 float32 float64 longdouble",
        "complex": "complex64 complex128 clongdouble",
    }
    types_by_kind = {
        k: [getattr(numpy, n) for n in v.split()] for k, v in names.items()
    }
    return {**types_by_kind, "others": [bool, object, bytes, str, numpy.void]}


class Cast:
    """`numpy.cast`: `cast[kind](values)` is an array of that kind."""

    def __getitem__(self, kind: Any) -> Any:
        """Return the function that makes such an array."""
        numpy = importlib.import_module("numpy")
        return lambda values: numpy.array(values).astype(kind)


def load_source(name: str, pathname: str, file: object = None) -> types.ModuleType:
    """`imp.load_source`: the module of a file, loaded anew."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"{pathname} is not a Python file", name=name, path=pathname)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unescape(self: Any, s: str) -> str:
    """`HTMLParser.unescape`."""
    return html.unescape(s)


def predict_classes(self: Any, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
    """`Sequential.predict_classes`: `[N]` classes, or `[N, 1]` of one output."""
    scores = self.predict(x, batch_size=batch_size, verbose=verbose)
    if scores.shape[-1] > 1:
        return scores.argmax(axis=-1)
    return (scores > 0.5).astype("int32")


def has_subset(self: Any, subset: Any, dictionary: Any, msg: Any = None) -> None:
    """`TestCase.assertDictContainsSubset`."""
    self.assertEqual(dictionary, {**dictionary, **subset}, msg)


_CANVAS = "matplotlib.backends.backend_agg.FigureCanvasAgg"
_OURS: dict[str, Any] = {
    "inspect.getargspec": getargspec,
    "numpy.NINF": -float("inf"),
    "numpy.NZERO": -0.0,
    "numpy.PZERO": 0.0,
    "numpy.alen": alen,
    "numpy.in1d": in1d,
    "numpy.msort": msort,
    "numpy.asfarray": asfarray,
    "numpy.asscalar": asscalar,
    "numpy.cast": Cast(),
    "numpy.sctypes": sctypes,  # what it returns, since it needs NumPy
    "PIL.ImageDraw.ImageDraw.textsize": lost_pictures.textsize,
    "PIL.ImageFont.FreeTypeFont.getsize": lost_pictures.getsize,
    "PIL.ImageFont.ImageFont.getsize": lost_pictures.getsize,
    f"{_CANVAS}.set_window_title": lost_pictures.set_window_title,
    f"{_CANVAS}.tostring_rgb": lost_pictures.tostring_rgb,
    "scipy.misc.bytescale": lost_pictures.bytescale,
    "scipy.misc.imread": lost_pictures.imread,
    "scipy.misc.imresize": lost_pictures.imresize,
    "scipy.misc.imsave": lost_pictures.imsave,
    "scipy.misc.toimage": lost_pictures.toimage,
    "scipy.ndimage.imread": lost_pictures.imread,
    "html.parser.HTMLParser.unescape": unescape,
    "imp.load_source": load_source,
    "keras.models.Sequential.predict_classes": predict_classes,
    "sys.setcheckinterval": lambda n: None,  # without effect since Python 3.2
    "unittest.TestCase.assertDictContainsSubset": has_subset,
}


def bring_back(used: Collection[str]) -> None:
    """Give modules the names that they have lost; no name changes its meaning.

    Args:
      used: the lost names that the program uses.
    """
    always = {name for name, row in lost_names().items() if _is_for_all(name, row)}
    for name in sorted({*always, *used} - lost_methods.OURS.keys()):
        row = lost_names()[name]
        if row.library == "Python" or is_installed(name.partition(".")[0]):
            _bring_back(name, row)
    for again, kind in (("bool", bool), ("long", int)):  # NumPy 2 has them again
        _give(f"numpy.{again}", kind)


def _bring_back(name: str, row: LostName) -> None:
    """Give one name back, unless this release of its library still has it."""
    if "." not in name:
        if row.living or row.is_given_back:
            _module(name)  # for its import; its names have rows of their own
    elif _has(name):
        return
    elif name in _OURS:
        replacement = _OURS[name]
        _give(name, replacement() if replacement is sctypes else replacement)
    elif row.is_method and row.living:
        _give(name, _forwarding(row.living.rpartition(".")[2]))
    elif row.living:
        name_today = _name_of_today(row.living)
        root = name_today.partition(".")[0]
        if hasattr(builtins, root) or is_installed(root):
            _give(name, _value(name_today))


def _forwarding(method: str) -> Any:
    """Return a method that calls another one of its object."""

    def forward(self: Any, *args: Any, **named: Any) -> Any:
        return getattr(self, method)(*args, **named)

    return forward


def _is_for_all(name: str, row: LostName) -> bool:
    """Return whether libraries get a name back, too.

    A whole module that Python has lost is none: a library may look whether it is there.
    """
    if row.library == "Python":
        return name.partition(".")[0] in sys.stdlib_module_names
    return row.library == "NumPy"


def _has(name: str) -> bool:
    """Return whether a module that was imported already has a name."""
    module, _, attribute = _name_of_today(name).rpartition(".")
    # Not `hasattr`: NumPy warns of some of these names.
    return attribute in vars(sys.modules.get(module, object))


def _name_of_today(name: str) -> str:
    """Return a name of `keras` is one of the Keras that the program gets.

    `tf` is short.
    """
    root, dot, inside = name.partition(".")
    whole = {KERAS: keras2_package(), "tf": "tensorflow"}.get(root, root)
    return f"{whole}{dot}{inside}"


def _give(name: str, value: object) -> None:
    """Set a lost name, and the modules above it that are lost with it."""
    module, _, attribute = _name_of_today(name).rpartition(".")
    owner = _module(module)
    if isinstance(value, types.ModuleType):
        sys.modules.setdefault(f"{module}.{attribute}", value)
    # Not `hasattr`: NumPy warns of some of these names.
    if attribute not in vars(owner):
        InstanceMethods(owner, {attribute: value}).install()
    listed = vars(owner).get("__all__")
    if isinstance(listed, list) and attribute not in (*listed, *dir(builtins)):
        listed.append(attribute)  # for `from numpy import *`


def _module(name: str) -> types.ModuleType | type:
    """Return a module or a class, or an empty module if the library has lost it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, _, attribute = name.rpartition(".")
        above = _module(parent) if parent else None
    existing = None if above is None else vars(above).get(attribute)
    if isinstance(existing, type | types.ModuleType):
        return existing
    empty = types.ModuleType(
        name, "Names that this module had until its library removed them."
    )
    empty.__path__ = []
    sys.modules[name] = empty
    if above is not None and existing is None:
        InstanceMethods(above, {attribute: empty}).install()
    return empty


def _value(living: str) -> Any:
    """Return the object of a name: a builtin, a module, or a name in one."""
    if hasattr(builtins, living.partition(".")[0]):  # `str.maketrans`
        return pkgutil.resolve_name(f"builtins.{living}")
    try:
        return pkgutil.resolve_name(living)
    except (ImportError, AttributeError):
        raise errors.PrivateNameMovedError(f"`{living}` is not available.") from None
