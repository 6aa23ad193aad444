"""Every name, method and argument that Python and NumPy removed is told.

The records are of Python 3.7 and NumPy 1.18, with which TensorFlow 1.15 ran.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hookbridge.tf1_names.changes import OF_FUNCTIONS
from hookbridge.tf1_names.removed_in_libraries import (
    removed_names,
    removed_part,
)

DATA = Path(__file__).with_name("data")
# "names" of `numpy`; "methods" of its types, "arguments" of its functions.
NUMPY: dict[str, Any] = json.loads((DATA / "numpy_1_18.json").read_text("utf-8"))
# Module -> its public names -> the methods that a class of this name defines itself.
PYTHON: dict[str, dict[str, list[str]]] = json.loads(
    (DATA / "python_3_7.json").read_text("utf-8")
)
# What is there of no use to a program: switches of `import`, of C and of the tests.
OF_NO_USE = re.compile(
    "ALLOW_THREADS|BUFSIZE|CLIP|RAISE|WRAP|MAXDIMS|(ERR|FPE|SHIFT|MAY_SHARE|UFUNC)_.*|"
    "FLOATING_POINT_SUPPORT|Tester|absolute_import|division|print_function|add_.*|"
    "compat|numarray|oldnumeric|sys|warnings|sctypeNA|typeNA|core|matrixlib|version"
)
# What hardly a program asks for, or what is there under another way to look.
OF_PYTHON_OF_NO_USE = {
    "array": ["ArrayType.fromstring", "ArrayType.tostring"],
    "binascii": ["a2b_hqx", "b2a_hqx", "rlecode_hqx", "rledecode_hqx"],
    "configparser": ["LegacyInterpolation"],
    "dis": ["hasnargs"],
    "enum": ["Enum.name", "Enum.value", "auto.value"],
    "gettext": [
        "GNUTranslations.lgettext",
        "GNUTranslations.lngettext",
        "NullTranslations.lgettext",
        "NullTranslations.lngettext",
        "NullTranslations.output_charset",
        "NullTranslations.set_output_charset",
        "bind_textdomain_codeset",
        "ldgettext",
        "ldngettext",
        "lgettext",
        "lngettext",
    ],
    "gzip": ["GzipFile.filename"],
    "inspect": [
        "Signature.from_builtin",
        "Signature.from_function",
        "k",
        "mod_dict",
        "v",
    ],
    "locale": ["resetlocale"],
    "pkgutil": ["ImpImporter", "ImpLoader"],
    "platform": ["popen"],
    "plistlib": ["Data"],
    "sqlite3": ["Cache", "Statement", "version", "version_info"],
    "sys": ["callstats", "get_coroutine_wrapper", "set_coroutine_wrapper"],
    "tempfile": ["SpooledTemporaryFile.softspace"],
    "textwrap": ["TextWrapper.uspace", "TextWrapper.x"],
    "unicodedata": ["ucnhash_CAPI"],
    "wave": ["openfp"],
    "xml.etree.ElementTree": ["XMLParser.doctype"],
    "zipimport": [
        "zipimporter.archive",
        "zipimporter.find_loader",
        "zipimporter.find_module",
        "zipimporter.prefix",
    ],
}
# Modules whose names own files have more often than programs import them.
OF_OWN_FILES = {
    "binhex",
    "chunk",
    "crypt",
    "formatter",
    "mailcap",
    "nis",
    "ossaudiodev",
    "parser",
    "spwd",
    "symbol",
    "uu",
}
# Arguments that were open (`**kwargs`), or that only had other names by place.
_OPEN = {"args", "kwargs", "kwarg", "style", "x", "y"}


def test_every_name_that_numpy_has_lost_is_told() -> None:
    lost = set(NUMPY["names"]) - set(dir(np))
    known = {n[len("numpy.") :] for n in removed_names() if n.startswith("numpy.")}
    known |= {"bool", "long"}  # NumPy 2 has them again
    assert not {n for n in lost - known if not OF_NO_USE.fullmatch(n)}


def test_every_method_that_arrays_have_lost_is_told() -> None:
    for kind, methods in NUMPY["methods"].items():
        owner = getattr(np, kind.rpartition(".")[2])
        lost = {name for name in methods if not hasattr(owner, name)}
        # Types of data still have this one, so that the name alone tells nothing.
        assert {f"numpy.ndarray.{name}" for name in lost - {"newbyteorder"}} <= {
            *removed_names()
        }, kind


def test_every_argument_that_functions_of_numpy_have_lost_is_told() -> None:
    for name, arguments in NUMPY["arguments"].items():
        module, _, last = name.rpartition(".")
        function = getattr(importlib.import_module(module), last, None)
        if function is None or removed_part(name):
            continue  # its name is lost
        try:
            today = inspect.signature(inspect.unwrap(function)).parameters
        except ValueError:
            continue  # it does not tell them
        lost = set(arguments) - today.keys() - _OPEN
        assert lost <= OF_FUNCTIONS.get(name, {}).keys(), (name, lost)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_name_that_python_has_lost_is_told() -> None:
    of_no_use = {
        f"{module}.{name}"
        for module, names in OF_PYTHON_OF_NO_USE.items()
        for name in names
    }
    untold = {name for name in _lost_of_python() if not removed_part(name)}
    assert untold <= of_no_use | OF_OWN_FILES


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # it would be in a module that is no package
        return False


def _lost_of_python() -> Iterator[str]:
    for module, names in PYTHON.items():
        try:
            found = importlib.import_module(module)
        except ImportError:
            yield module
            continue
        for name, methods in names.items():
            if not hasattr(found, name):
                if not _is_module(f"{module}.{name}"):
                    yield f"{module}.{name}"
                continue
            owner = getattr(found, name)
            yield from (
                f"{module}.{name}.{one}" for one in methods if not hasattr(owner, one)
            )
