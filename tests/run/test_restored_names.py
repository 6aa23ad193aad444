"""Names that libraries removed: `run` restores those that the program uses."""

from __future__ import annotations

import collections.abc
import contextlib
import inspect
import io
import os
import random
import sys
import threading
import time
import types
import unittest
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fork_server import ForkServer
from launching import as_own_file, launch_fork
from written_files import write_files

import hookbridge as hb
from hookbridge.cli import main
from hookbridge.legacy import removed_attributes
from hookbridge.old_programs.run.restored import (
    old_libraries,
    restored_names,
)
from hookbridge.old_programs.scanning.scan import scan
from hookbridge.tf1_names import removed_in_libraries


def test_modules_that_a_library_lost_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "sklearn/__init__.py": "",
        "sklearn/model_selection.py": "def train_test_split(): return 1\n",
        "scipy/__init__.py": "",
        "scipy/sparse/__init__.py": "",
        "scipy/sparse/linalg.py": "def eigsh(): return 2\n",
    }
    write_files(tmp_path, files)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [n for n in sys.modules if n.startswith(("scipy", "sklearn"))]:
        monkeypatch.delitem(sys.modules, name)
    try:
        names = as_own_file(
            "import inspect, numpy as np, scipy.misc\n"
            "import sklearn.cross_validation as split\n"
            "from scipy.sparse.linalg.eigen import arpack\n"
            "from scipy.misc import imsave\n"
            "split = split.train_test_split()\n"
            "found = arpack.eigsh()\n"
            "is_same = scipy.misc.imsave is imsave\n"
            "args = inspect.getargspec(lambda a, b=1: a).args\n"
            "numbers = np.float, np.NINF, np.sctypes['float'][1], np.bool(1)\n"
            "asked = getattr(np, 'float')\n"
        )
    finally:
        for name in [n for n in sys.modules if n.startswith(("scipy", "sklearn"))]:
            del sys.modules[name]
    assert names["split"] == 1 and names["found"] == 2 and names["is_same"]
    assert names["imsave"] is hb.legacy.imsave
    assert names["args"] == ["a", "b"] and names["asked"] is float
    assert names["numbers"] == (float, -np.inf, np.float32, True)


LIBRARY = """import collections, numpy, random, time
def has(module, name): return hasattr(module, name)
"""
OF_A_PROGRAM = """import collections, inspect, random, time, unittest
import numpy as np
from numpy import float
from random import shuffle
import library
array, before = np.array([[1], [2, 3]]), (np.array, random.shuffle)
values = [1, 2, 3, 4]
random.shuffle(values, lambda: 0.3)
np.percentile([1, 2], 40, interpolation="lower")
np.float(2), time.clock(), collections.Mapping, inspect.getargspec(len.__class__)
asked = [library.has(module, name) for module, name in (
    (np, "float"), (time, "clock"), (collections, "Mapping"), (np, "lib.pad"),
    (unittest.TestCase, "assertItemsEqual"))]
"""


def test_others_keep_their_libraries() -> None:
    """All that a program finds again is found in its own files only."""
    owners: list[Any] = [np, np.random, random, random.Random, collections, inspect]
    owners += [time, unittest.TestCase, threading.Thread, types]
    before = [dict(vars(owner)) for owner in owners]
    modules = set(sys.modules)
    library = types.ModuleType("library")
    exec(LIBRARY, vars(library))
    sys.modules["library"] = library
    try:
        program = as_own_file(OF_A_PROGRAM)
    finally:
        del sys.modules["library"]
    assert program["array"].dtype == object and program["values"] == [4, 3, 1, 2]
    assert program["before"][0] is not np.array and not any(program["asked"])
    assert [dict(vars(owner)) for owner in owners] == before
    new = set(sys.modules) - modules
    assert not any(
        type(sys.modules[name]) is restored_names.RestoredModule for name in new
    )


def test_a_file_of_an_old_library_gets_what_it_lacks(tmp_path: Path) -> None:
    """What it tries stays as it is: it has another way."""
    place = tmp_path / "site-packages" / "old_library.py"
    place.parent.mkdir()
    place.write_text(
        '"""An old library."""\n'
        "import collections, imp\n"
        "import numpy as np\n"
        "from collections import Mapping, OrderedDict\n"
        "try:\n    from fractions import gcd\nexcept ImportError:\n    gcd = None\n"
        "has = hasattr(np, 'float')\n"
        "kinds = np.float, collections.MutableMapping, Mapping, imp.reload\n"
        "plain = np.array\n"
    )
    assert old_libraries.is_one(str(place))
    loader = old_libraries.OldLibraryLoader("old_library", str(place))
    names: dict[str, Any] = {"__name__": "old_library"}
    exec(loader.get_code("old_library"), names)
    kinds = (float, collections.abc.MutableMapping, collections.abc.Mapping)
    assert names["kinds"][:3] == kinds
    assert names["kinds"][3].__name__ == "reload"  # Python 3.11 has its own
    assert names["gcd"] is None and not names["has"] and names["plain"] is np.array
    place.write_text("import numpy as np\nimport importlib\nx = np.array\n")
    assert not old_libraries.is_one(str(place))


def test_a_place_that_lost_its_functions_has_them_again(tmp_path: Path) -> None:
    text = (
        "import numpy as np\nimport numpy.lib.arraysetops as sets\n"
        "from numpy.lib.nanfunctions import nansum\n"
        "print(np.lib.pad([1], 1, 'constant'), sets.union1d([1], [2]), nansum([2]))\n"
    )
    (tmp_path / "sets.py").write_text(text)
    assert main(["migrate", "rewrite", str(tmp_path), "--write"]) == 0
    rewritten = (tmp_path / "sets.py").read_text()
    assert "np.pad([1]" in rewritten and "np.union1d" in rewritten
    for program, run in ((text, as_own_file), (rewritten, exec)):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run(program)
        assert out.getvalue() == "[0 1 0] [1 2] 2\n"
    (tmp_path / "sets.py").write_text("import scipy as sp\nsp.sign(2), sp.sqrt(-1)\n")
    found = {f.name: f.way_out for f in scan([tmp_path]).findings}
    assert found == {
        "scipy.sign": "`numpy.sign`",
        "scipy.sqrt": "`numpy.lib.scimath.sqrt`",
    }


OF_KERAS_2_2 = """\
import tensorflow as tf
import keras.engine as engine
from keras import objectives
from keras.backend.tensorflow_backend import set_session
from keras.engine.topology import InputSpec, Layer
from keras.layers.core import Dense
from keras.optimizers import adam
with tf.Session() as session:
    set_session(session)
    print(engine.Layer is Layer, Dense(1)(tf.ones([2, 3])).shape, adam.__name__)
"""


def test_modules_that_keras_had_as_a_package_of_its_own_come_back(
    tmp_path: Path, launcher: ForkServer
) -> None:
    program = tmp_path / "old.py"
    program.write_text(OF_KERAS_2_2)
    ended = launch_fork(launcher, str(program))
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.splitlines()[-1] == "True (2, 1) Adam"
    program.write_text("from keras.wrappers.scikit_learn import KerasClassifier\n")
    found = scan([program], target="2.21").findings
    assert ("KERAS_GONE", "the package SciKeras") in {
        (f.code, f.way_out) for f in found
    }


def test_removed_functions_of_numpy_act_as_before() -> None:
    program = (
        "import warnings\nimport numpy as np\nfrom numpy import alen, math, msort\n"
        "warnings.simplefilter('ignore', np.VisibleDeprecationWarning)\n"
        "print(alen(5), alen([[1], [2]]), math.sqrt(4.0))\n"
        "print(msort([[3, 1], [2, 4]]).tolist())\n"
        "print(np.in1d([[1, 2], [3, 4]], [2, 3]).tolist())\n"
        "print(np.trapz([1, 2, 3]), np.row_stack([[1], [2]]).tolist())\n"
    )
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        as_own_file(program)
    assert out.getvalue().splitlines() == [
        "1 2 2.0",
        "[[2, 1], [3, 4]]",
        "[False, True, True, False]",
        "4.0 [[1], [2]]",
    ]


def test_a_name_that_a_library_lost_comes_back_by_an_alias_of_its_module(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """TensorFlow Probability's modules have other names than programs know."""
    package = tmp_path / "site-packages" / "tensorflow_probability"
    (package / "python").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from tensorflow_probability.python import distributions, util\n"
    )
    (package / "python" / "__init__.py").touch()
    (package / "python" / "distributions.py").touch()
    (package / "python" / "util.py").write_text("SeedStream = 'moved'\n")
    program = tmp_path / "main.py"
    program.write_text(
        "import numpy as np\nimport tensorflow as tf\n"
        "import tensorflow_probability as tfp\n"
        "tfd = tfp.distributions\nlib = np.lib\ntf.placeholder(tf.float32)\n"
        "def names():\n    return tfd.SeedStream, tfp.distributions.SeedStream\n"
        "print(*names(), lib.pad([1], 1))\n"
    )
    path = str(package.parent)
    done = launch_fork(launcher, str(program), cwd=tmp_path, PYTHONPATH=path)
    assert done.stdout == "moved moved [0 1 0]\n", done.stderr


def test_modules_that_python_lost_are_told_left_out_or_renamed(
    tmp_path: Path, launcher: ForkServer, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "main.py"
    program.write_text(
        "import dummy_threading, imp, macpath, os\n"
        "import tensorflow as tf\n"
        "print(imp.reload(os).name)\n"
        "tf.placeholder(tf.float32)\n"
    )
    done = launch_fork(launcher, str(program), cwd=tmp_path)
    assert done.stdout.split() == [os.name], done.stderr
    assert main(["doctor", str(program)]) == 0
    assert main(["migrate", "rewrite", str(program), f"--to={tmp_path / 'new'}"]) == 0
    written = (tmp_path / "new" / "main.py").read_text().splitlines()
    assert written[:2] == ["import os", "import importlib"]
    assert "print(importlib.reload(os).name)" in written
    program.write_text("import macpath\nprint(macpath.join('a', 'b'))\n")
    capsys.readouterr()
    assert main(["doctor", str(program)]) == 1
    assert "`posixpath`" in capsys.readouterr().out


def test_the_table_says_what_stands_for_each_name() -> None:
    for name, row in removed_in_libraries.removed_names().items():
        assert bool(row.replacement) != bool(row.hint), name
        # Modules whose names of today are known come back with these names.
        below = [
            n for n in removed_in_libraries.removed_names() if n.startswith(f"{name}.")
        ]
        ours = name in restored_names._OURS or name in removed_attributes.OURS
        given = ours or bool(below)
        assert row.is_restored is (given and not row.replacement), name


def test_doctor_looks_up_what_is_imported_from_an_installed_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "main.py": "import tensorflow as tf\n"
        "from json import dumps, no_such_name\n"
        "from numpy.linalg import norm\n"
        "from numpy.no_such_module import x\n"
        "import xml.etree.ElementTree as et, os.path, six.moves\n"
        "from collections import Mapping, OrderedDict\n"
        "from own import y\n"
        "try:\n    from json import neither\nexcept ImportError:\n    neither = None\n",
        "own.py": "y = 1\n",
    }
    write_files(tmp_path, files)
    assert main(["doctor", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "2 places need manual work." in out
    assert "json.no_such_name" in out and "numpy.no_such_module.x" in out
