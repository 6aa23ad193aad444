"""What the text of a module says of its names is what an import of it finds."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf

from hookbridge.ground.imports.module_names import names_of_module
from hookbridge.tf1_names.installed_names import missing, names_in, package
from hookbridge.tf1_names.parsing import parse_source

PACKAGES = ("keras", "numpy", "scipy", "tensorflow", "tf_keras", "tf_slim")
# Modules of Python that do something when they are imported.
_ACTING = ("antigravity", "idlelib", "this", "tkinter", "turtle", "turtledemo")
# What other modules set in a module, or take away: TensorFlow's own `__init__` does.
_BY_OTHERS = (
    "@",  # pytest's own, in modules whose assertions it rewrites
    "__warningregistry__",  # where a warning was raised
    "_current_module",
    "_estimator_module",
    "_keras_api",
    "_module_dir",
    "_tf_api",
    "_tf_uses_legacy_keras",
)
# Those of all others are compared by `make test-all`.
SAMPLE = (
    *(
        "asyncio.futures",
        "collections",
        "json.decoder",
        "logging.handlers",
        "re",
        "ssl",
    ),
    *("numpy.fft", "numpy.linalg", "numpy.ma.core", "numpy.random"),
    *("keras.losses", "keras.src.backend", "keras.src.layers", "keras.src.utils"),
    *("tensorflow.python.ops.array_ops", "tensorflow.python.ops.math_ops"),
    *("tensorflow.python.training.session_run_hook", "tensorflow.compat.v1.train"),
    *("tf_slim.layers.layers", "tf_slim.losses", "tf_slim.ops.variables"),
)


def of_python() -> Iterator[str]:
    """The modules of Python, without tests and programs."""
    # setuptools puts its own distutils in the place of Python's.
    others = {*_ACTING, "distutils", "lib2to3", "test"}
    for root in sorted(sys.stdlib_module_names - others):
        place = package(root)
        if place is not None and not root.startswith("_"):
            yield root
        if place is not None and place.is_dir():
            found = pkgutil.iter_modules([str(place)], f"{root}.")
            yield from (m.name for m in found if not m.name.endswith("__main__"))


def imported() -> list[str]:
    """The modules of some packages that this process has imported already."""
    return sorted(name for name in sys.modules if name.partition(".")[0] in PACKAGES)


def differences(name: str) -> list[str]:
    """The names of a module of which its text says something wrong."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return []
    file = str(getattr(module, "__file__", ""))
    if module.__name__ != name or not file.endswith(".py"):
        return []
    said = names_in(Path(file))
    assert said is not None, name
    has = vars(module)
    wrong = []
    for each in {*has, *said.possible}:
        full = f"{name}.{each}"
        answer = missing(full, name.count(".") + 1)
        if not answer.is_certain or each.startswith(_BY_OTHERS):
            continue
        # A module that was not imported yet is there all the same.
        if (
            bool(answer.rest) == (each in has)
            and not (Path(file).parent / each).is_dir()
        ):
            wrong.append(full)
    return wrong


def test_names_of_many_modules_are_those_of_their_imports() -> None:
    assert [wrong for name in SAMPLE for wrong in differences(name)] == []


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_names_of_all_modules_are_those_of_their_imports() -> None:
    dir(tf.keras)  # which imports Keras
    for root in ("numpy", "scipy"):
        place = package(root)
        for found in pkgutil.iter_modules([str(place)], f"{root}.") if place else ():
            importlib.import_module(found.name)
    modules = [*of_python(), *imported()]
    assert [wrong for name in modules for wrong in differences(name)] == []


@pytest.mark.parametrize(
    ("text", "certain", "possible"),
    [
        ("a = b = c = 1\n", "a b c", ""),
        (
            "try:\n  try:\n    x = 1\n  except E:\n    x = 2\nfinally:\n  y = 1\n",
            "x y",
            "",
        ),
        ("if a:\n  x = y = 1\nelse:\n  x = 2\n", "x", "y"),
        ("try:\n  import json as j\nexcept ImportError:\n  raise\n", "j", ""),
        ("for i in a:\n  x = 1\n", "", "i x"),
        ("[k for k in a if (last := k)]\n(b := 1)\n", "b last", ""),
        ("x: int\ny: int = 1\n", "y", ""),
        ("a = 1\ndel a\n", "", "a"),
        ("a = b = c = 1\ndel (a, [b])\ndel c.d, c[b]\n", "c", "a b"),
        ("def f(q):\n  global g\n  g = r = 1\nclass C:\n  m = 1\n", "f C", "g"),
        ("try:\n  pass\nexcept E as e:\n  pass\n", "", ""),
        ("match a:\n  case [b, *c]:\n    d = 1\n", "", "b c d"),
        ("import a.b, c.d as e\nfrom f import g as h, i\n", "a e h i", ""),
    ],
)
def test_what_statements_bind(text: str, certain: str, possible: str) -> None:
    names = names_of_module(parse_source(text))
    assert names.certain == set(certain.split())
    assert names.possible - names.certain == set(possible.split())
    assert not names.is_opaque


def test_what_a_text_does_not_show_is_not_claimed() -> None:
    for text in (
        "def __getattr__(name): ...",
        "globals()['a'] = 1",
        "import sys\nsys.modules[__name__].a = 1",
        "exec('a = 1')",
        "import enum\n@enum.global_enum\nclass E(enum.Enum):\n  A = 1",
    ):
        assert names_of_module(parse_source(text)).is_opaque, text
    for read in (
        "'a' in sys.modules and sys.modules['a'].b.c",
        "sys.modules.get('a'), list(sys.modules), sys.modules.keys()",
        "for name in sys.modules: getattr(sys.modules[name], 'a', None)",
        "x = sys.modules[__name__].__doc__, [n for n in sys.modules]",
    ):
        names = names_of_module(parse_source(f"import sys\n{read}"))
        assert not (names.is_opaque or names.adds_modules), read
    for written in (
        "module = sys.modules[__name__]",
        "sys.modules['a'] = b",
        "sys.modules[__name__].__dict__.update(a=1)",
        "setattr(sys.modules['a'], 'b', 1)",
        "replace(sys.modules)",
        "modules = sys.modules",
        "sys.meta_path.append(b)",
        "for module in sys.modules.values(): module.a = 1",
    ):
        assert names_of_module(parse_source(f"import sys\n{written}")).is_opaque, (
            written
        )
    assert names_of_module(parse_source("x = 1\nglobals().pop('x')")).removes_names
    listed = names_of_module(parse_source("__all__ = ['a', '_b']")).listed
    assert listed == frozenset({"a", "_b"})
    assert names_of_module(parse_source("__all__ = []\n__all__ += a")).listed is None
    computed = "__all__ = ['a']\ndef add():\n  __all__.append('b')\nadd()"
    assert names_of_module(parse_source(computed)).listed is None
