"""Methods and attributes that libraries removed from their classes."""

from __future__ import annotations

import array
import functools
import html
import pkgutil
import sys
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from hookbridge.contrib.private_modules import KERAS, keras2_package
from hookbridge.ground.groups import grouped
from hookbridge.legacy import picture_methods
from hookbridge.tf1_names.removed_in_libraries import removed_names


def _tostring(self: Any, *order: Any, **named: Any) -> bytes:
    data: bytes = self.tobytes(*order, **named)
    return data


def _itemset(self: Any, *args: Any) -> None:
    """`array.itemset(value)`, `(index, value)` or `(row, column, value)`."""
    *index, value = args
    plain = self.view(np.ndarray)  # whatever a class below, or a mask, makes of it
    if not index and self.size == 1:
        plain.fill(value)
    elif not index:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    elif len(index) == 1 and not isinstance(index[0], tuple):
        plain.flat[index[0]] = value
    else:
        plain[index[0] if len(index) == 1 else tuple(index)] = value


def _ptp(
    self: Any, axis: object = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Not `numpy.ptp`: it calls the method of a class below, which may call this."""
    highest: Any = np.maximum
    lowest: Any = np.minimum
    return np.subtract(
        highest.reduce(self, axis, None, out, keepdims),
        lowest.reduce(self, axis, None, None, keepdims),
        out,
    )


def _newbyteorder(self: Any, new_order: str = "S") -> Any:
    return self.view(self.dtype.newbyteorder(new_order))


def _getiterator(self: Element, tag: str | None = None) -> list[Element]:
    return list(self.iter(tag))


@property  # type: ignore[misc]
def _layers(self: Any) -> Any:
    """The list of the layers of a model, which a program may change."""
    return self._self_tracked_trackables


def _unescape(self: Any, s: str) -> str:
    """`HTMLParser.unescape`."""
    return html.unescape(s)


def _predict_classes(
    self: Any, x: object, batch_size: int = 32, verbose: int = 0
) -> Any:
    """`Sequential.predict_classes`: `[N]` classes, or `[N, 1]` of one output."""
    scores = self.predict(x, batch_size=batch_size, verbose=verbose)
    if scores.shape[-1] > 1:
        return scores.argmax(axis=-1)
    return (scores > 0.5).astype("int32")


def _has_subset(self: Any, subset: Any, dictionary: Any, msg: Any = None) -> None:
    """`TestCase.assertDictContainsSubset`."""
    self.assertEqual(dictionary, {**dictionary, **subset}, msg)


_CANVAS = "matplotlib.backends.backend_agg.FigureCanvasAgg"
# Method of a type -> what does the same; a property for an attribute.
OURS: dict[str, Any] = {
    "PIL.ImageDraw.ImageDraw.textsize": picture_methods.textsize,
    "PIL.ImageFont.FreeTypeFont.getsize": picture_methods.getsize,
    "PIL.ImageFont.ImageFont.getsize": picture_methods.getsize,
    "array.array.fromstring": array.array.frombytes,
    "array.array.tostring": array.array.tobytes,
    "html.parser.HTMLParser.unescape": _unescape,
    "keras.models.Model._layers": _layers,
    "keras.models.Sequential.predict_classes": _predict_classes,
    f"{_CANVAS}.set_window_title": picture_methods.set_window_title,
    f"{_CANVAS}.tostring_rgb": picture_methods.tostring_rgb,
    "numpy.generic.newbyteorder": _newbyteorder,
    "numpy.generic.ptp": _ptp,
    "numpy.generic.tostring": _tostring,
    "numpy.ndarray.itemset": _itemset,
    "numpy.ndarray.newbyteorder": _newbyteorder,
    "numpy.ndarray.ptp": _ptp,
    "numpy.ndarray.tostring": _tostring,
    "unittest.TestCase.assertDictContainsSubset": _has_subset,
    "xml.etree.ElementTree.Element.getchildren": list,
    "xml.etree.ElementTree.Element.getiterator": _getiterator,
}
_SUPER: Any = super  # the types do not say that it has `__self__`


@functools.cache
def names() -> frozenset[str]:
    """Return the last parts of the methods that `attribute` knows."""
    return frozenset(_by_name())


@functools.cache
def _by_name() -> dict[str, list[str]]:
    """Return the classes that no longer have a method, by its name."""
    rows = removed_names().items()
    known = [
        n for n, row in rows if row.is_method and (row.replacement or row.is_restored)
    ]
    parts = (full.rpartition(".") for full in {*known, *OURS})
    return grouped((name, kind) for kind, _, name in parts)


def attribute(owner: object, name: str) -> Any:
    """Return `owner.name`, or what does the same if a library removed it.

    `attribute(model, "predict_classes")(x)` is the method of a Keras model; the same
    method of another object is its own.

    Args:
      owner: an object, or a class.
      name: the name of its method or attribute.

    Returns:
      The method or attribute.

    Raises:
      AttributeError: it never had such a name.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        if isinstance(owner, _SUPER):
            owner = owner.__self__
        kind: Any = owner if isinstance(owner, type) else type(owner)
        if replacement := _ours(kind, name):
            is_class = kind is owner
            if isinstance(replacement, property) and not is_class:
                return replacement.__get__(owner)
            return replacement if is_class else functools.partial(replacement, owner)
        raise


def _ours(kind: type, name: str) -> Any:
    """Return what does the same as a removed method of a type or of its bases."""
    for above in _by_name().get(name, ()):
        owner = _imported_class(current_name(above))
        if isinstance(owner, type) and issubclass(kind, owner):
            full = f"{above}.{name}"
            return OURS.get(full) or _by_replacement(removed_names()[full].replacement)
    return None


def _imported_class(name: str) -> Any:
    """Return a class, if its library is imported; an object is of no other one."""
    if name.partition(".")[0] not in sys.modules:
        return None
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None


def _by_replacement(replacement: str) -> Callable[..., Any]:
    """Return the method that calls the one with a current name."""
    name = replacement.rpartition(".")[2]

    def forward(self: Any, *args: Any, **named: Any) -> Any:
        return getattr(self, name)(*args, **named)

    return forward


def current_name(name: str) -> str:
    """Return a name with its real root: `keras` is the program's, `tf` is short."""
    root, dot, inside = name.partition(".")
    whole = {KERAS: keras2_package(), "tf": "tensorflow"}.get(root, root)
    return f"{whole}{dot}{inside}"
