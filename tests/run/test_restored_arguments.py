"""Arguments, values and methods that Python and NumPy removed are restored in `run`."""

from __future__ import annotations

import array
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from fork_server import ForkServer
from launching import as_own_file, launch_fork, output_of

import hookbridge as hb
from hookbridge.old_programs.run.restored import (
    restored_arguments,
    restored_names,
)

_IS_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
_NO_SCALARS = np.lib.NumpyVersion(np.__version__) >= "2.4.0"


def test_functions_of_numpy_take_what_they_lost_in_every_file(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """`helper` has no TensorFlow, and a method of the program stays its own."""
    (tmp_path / "helper.py").write_text(
        "import numpy as np\n"
        "def flat(a): return np.reshape(a, newshape=[-1]).tolist()\n"
    )
    program = (
        "import numpy as np\n"
        "from numpy import percentile\n"
        "import tensorflow as tf\n"
        "from helper import flat\n"
        "class Own:\n"
        "    def histogram(self, x, normed): return x, normed\n"
        "tf.placeholder(tf.float32)\n"
        "print(Own().histogram(3, normed=True), flat([[1], [2]]))\n"
        "print(percentile([1, 2, 3], 40, interpolation='lower'))\n"
        "print(np.histogram([1, 2, 3], 2, normed=True)[0].round(2).tolist())\n"
        "print(np.reshape([1], [1, 1]).tolist())\n"
    )
    assert output_of(launcher, tmp_path, program).splitlines() == [
        "(3, True) [1, 2]",
        "1",
        "[0.33, 0.67]",
        "[[1]]",
    ]


def test_values_that_python_and_numpy_refuse_are_taken() -> None:
    """As Python 3.7 and NumPy 1.18 took them."""
    as_own_file(
        "import random, numpy, pytest\n"
        "rows = [numpy.array([1]), numpy.array([2])]\n"
        "assert numpy.vstack(iter(rows)).tolist() == [[1], [2]]\n"
        "assert numpy.vstack(tup=iter([[1], [2]])).tolist() == [[1], [2]]\n"
        "assert numpy.hstack({1: rows[0], 2: rows[1]}.values()).tolist() == [1, 2]\n"
        "assert numpy.stack(rows, axis=1).tolist() == [[1, 2]]\n"
        "assert numpy.array([[1], [2, 3]]).tolist() == [[1], [2, 3]]\n"
        "assert numpy.asarray([[1], [2, 3]]).dtype == object\n"
        "with pytest.raises(ValueError, match='inhomogeneous'):\n"
        "    numpy.array([[1], [2, 3]], numpy.float32)\n"
        "with pytest.raises(ValueError, match='could not'):\n"
        "    numpy.array(['x']).astype(float)\n"
        "assert numpy.array([1, 2], copy=False).tolist() == [1, 2]\n"
        "read = numpy.fromstring(b'ab', numpy.uint8)\n"
        "read[0] = 1\n"
        "assert read.tolist() == [1, 98]\n"
        "assert numpy.fromstring('1, 2', sep=',').tolist() == [1.0, 2.0]\n"
        "assert numpy.fromstring('\\xe9', numpy.uint8).tolist() == [195, 169]\n"
        "assert random.sample({7}, 1) == [7] and random.sample([7], k=1) == [7]\n"
        "assert random.randint(2.0, 2) == 2\n"
        "assert random.randrange(3.0, stop=4.0) == 3\n"
        "with pytest.raises((TypeError, ValueError)):\n"
        "    random.randint(0.5, 2)\n"
        "found = numpy.corrcoef([1, 2], [1, 2], bias=True)\n"
        "assert found.round().tolist() == [[1, 1], [1, 1]]\n"
    )


def test_lists_of_unequal_length_are_arrays_of_objects(tmp_path: Path) -> None:
    """Where a function makes the array, too: NumPy 1.18 gave these."""
    as_own_file(
        "import numpy, pytest\n"
        "rows = [[1], [2, 3], [4, 5, 6]]\n"
        "numpy.savez(folder / 'rows.npz', rows=rows)\n"
        "read = numpy.load(folder / 'rows.npz', allow_pickle=True)['rows']\n"
        "assert read.tolist() == rows\n"
        "parts = [part.tolist() for part in numpy.array_split(rows, 2)]\n"
        "assert parts == [rows[:2], rows[2:]]\n"
        "assert numpy.shape(rows) == (3,)\n"
        "assert numpy.array(rows, None).dtype == object\n"
        "assert numpy.array(object=rows, copy=False).tolist() == rows\n"
        "assert numpy.asarray(a=rows, order='C').tolist() == rows\n"
        "assert numpy.concatenate([rows, rows]).tolist() == rows * 2\n"
        "assert numpy.delete(rows, 1).tolist() == [rows[0], rows[2]]\n"
        "assert numpy.take(rows, [0, 2]).tolist() == [rows[0], rows[2]]\n"
        "numpy.save(folder / 'rows.npy', rows)\n"
        "read = numpy.load(folder / 'rows.npy', allow_pickle=True)\n"
        "assert read.tolist() == rows\n"
        "with pytest.raises((TypeError, ValueError)):\n"
        "    numpy.mean(rows)\n"
        "numpy.random.seed(0)\n"
        "assert numpy.random.permutation(rows).tolist() == rows[::-1]\n"
        "with pytest.raises(ValueError, match='inhomogeneous'):\n"
        "    numpy.asanyarray(rows, numpy.float32)\n",
        folder=tmp_path,
    )


def test_cast_makes_arrays_of_a_kind() -> None:
    cast = restored_names.Cast()
    assert cast["uint8"]([1.5, 2.5]).tolist() == [1, 2]
    assert cast[np.float32](3).dtype == np.float32


def test_random_takes_what_it_took() -> None:
    """Values are those of Python 3.7."""
    as_own_file(
        "import random, numpy as np\n"
        "from random import sample\n"
        "own = random.Random(1)\n"
        "assert own.sample({1, 2, 3}, 2) == [1, 3]\n"
        "assert sample(population={7}, k=1) == [7]\n"
        "values = [1, 2, 3, 4]\n"
        "random.shuffle(values, lambda: 0.3)\n"
        "assert values == [4, 3, 1, 2]\n"
        "random.seed(np.int64(5))\n"
        "first = random.random()\n"
        "random.seed(5)\n"
        "assert random.random() == first\n"
        "random.seed((1, 2))\n"
        "assert random.randint(0, np.float32(3)) in range(4)\n"
    )


def test_what_a_program_sets_is_what_it_reads() -> None:
    """A function that it replaces, and a name that is its own."""
    names = as_own_file(
        "import numpy as np\n"
        "plain = np.array\n"
        "np.array = lambda *values: 'own'\n"
        "set_by_program = np.array([1])\n"
        "np.array = original\n"
        "def take(np): return np.float\n"
        "class Own:\n    float = 3\n    array = shuffle = 4\n"
        "read = take(Own), Own.array, Own().shuffle\n",
        original=np.array,
    )
    assert names["set_by_program"] == "own" and names["read"] == (3, 4, 4)


def test_methods_of_classes_below_built_in_types_come_back() -> None:
    ask = hb.legacy.attribute

    class Below(np.ndarray):
        def tostring(self) -> bytes:
            return b"own " + bytes(ask(super(), "tostring")())

        def ptp(self, axis: int | None = None) -> Any:
            return ask(super(), "ptp")(axis)

    values = np.array([97, 98], np.uint8)
    below: Any = values.view(Below)
    assert ask(below, "tostring")() == b"own ab" and below.ptp() == 1
    assert ask(np.ndarray, "tostring")(values) == b"ab"
    masked = np.ma.array([1, 2], mask=[False, True])
    ask(masked, "itemset")(1, 9)
    assert masked.tolist() == [1, None]
    with pytest.raises(ValueError, match="size 1"):
        ask(values, "itemset")(7)


def test_methods_of_built_in_types_come_back() -> None:
    ask = hb.legacy.attribute
    values = np.array([[1, 2], [3, 4]], np.uint8)
    assert ask(values, "tostring")() == ask(values[0, 0], "tostring")() + b"\2\3\4"
    assert ask(values, "tostring")(order="F") == b"\1\3\2\4"
    assert ask(values, "ptp")() == 3 and ask(values, "ptp")(axis=0).tolist() == [2, 2]
    for index, expected in (((0, 1), [1, 9, 3, 4]), ((3,), [1, 9, 3, 9])):
        ask(values, "itemset")(*index, 9)
        assert values.ravel().tolist() == expected
    ask(values, "itemset")((1, 0), 8)
    assert values[1, 0] == 8
    one = np.zeros(1)
    ask(one, "itemset")(5)
    assert one.tolist() == [5.0]
    swapped = ask(np.array([1], "<i2"), "newbyteorder")()
    assert swapped.tolist() == [256]
    bytes_read = array.array("b")
    ask(bytes_read, "fromstring")(b"ab")
    assert ask(bytes_read, "tostring")() == b"ab"
    element = ElementTree.fromstring("<a><b/><c><b/></c></a>")
    assert [one.tag for one in ask(element, "getchildren")()] == ["b", "c"]
    assert len(ask(element, "getiterator")("b")) == 2
    assert ask(ElementTree, "tostring") is ElementTree.tostring

    class Own:
        def getchildren(self) -> str:
            return "mine"

    assert ask(Own(), "getchildren")() == "mine"
    with pytest.raises(AttributeError, match="'Own' object has no attribute 'ptp'"):
        ask(Own(), "ptp")


def test_a_program_finds_them_in_every_file(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """A file without TensorFlow too; the lines of an error are the program's."""
    (tmp_path / "helper.py").write_text(
        '"""Bytes."""\n'
        "from __future__ import division\n"
        "import base64, imp, threading\n"
        "def of(x): return x.tostring()\n"
        "def text(name): return open(name, 'rU').read()\n"
        "def is_alive(): return threading.Thread().isAlive()\n"
        "settings = imp.load_source('settings', 'settings.cfg.py')\n"
        "coded = base64.encodestring(b'a')\n"
        "def fails(): return of(3)\n"
    )
    (tmp_path / "settings.cfg.py").write_text("rate = 2\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "import tensorflow as tf\n"
        "import helper\n"
        "tf.placeholder(tf.float32)\n"
        "print(helper.of(np.array([97], np.uint8)), helper.text('settings.cfg.py'))\n"
        "print(helper.is_alive(), helper.settings.rate, helper.coded)\n"
        "helper.fails()\n"
    )
    done = launch_fork(launcher, str(program), cwd=tmp_path, PYTHONWARNINGS="ignore")
    assert done.stdout.splitlines() == ["b'a' rate = 2", "", "False 2 b'YQ==\\n'"]
    assert 'helper.py", line 4, in of' in done.stderr
    assert "AttributeError: 'int' object has no attribute 'tostring'" in done.stderr
    assert "removed_attributes" not in done.stderr


def test_a_shape_takes_whole_floats(tmp_path: Path, launcher: ForkServer) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nimport tensorflow as tf\n"
        "x = tf.placeholder(tf.float32, [None, 8 / 2])\n"
        "w = tf.get_variable('w', (np.sqrt(16), 2))\n"
        "print(x.shape.as_list(), w.shape.as_list(), tf.Dimension(3.0).value)\n"
        "print(tf.matmul(x, w).shape.as_list(), tf.keras.Input([3.0]).shape[1].value)\n"
        "tf.placeholder(tf.float32, [2.5])\n"
    )
    done = launch_fork(launcher, str(program), cwd=tmp_path)
    assert done.stdout.splitlines() == ["[None, 4] [4, 2] 3", "[None, 2] 3"]
    assert "TypeError" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(not _NO_SCALARS, reason="this NumPy takes such arrays for numbers")
def test_the_way_out_is_told_where_no_value_can_be_given_back(
    tmp_path: Path, launcher: ForkServer
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nimport tensorflow as tf\n"
        "tf.placeholder(tf.float32)\n"
        "np.zeros(2)[0] = np.array([1.0])\n"
    )
    done = launch_fork(launcher, str(program), cwd=tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"hookbridge run: NumPy {np.__version__} does not convert")
    assert '`pip install "numpy<2.4"`' in last


@pytest.mark.skipif(not _IS_2, reason="this NumPy takes such numbers")
def test_the_way_out_is_told_where_a_type_is_too_small_for_a_number() -> None:
    numpy: Any = np
    takes: list[Callable[[], Any]] = [
        lambda: numpy.array([-1], numpy.uint8),
        lambda: numpy.uint8(3) + 300,
        lambda: numpy.zeros(3, numpy.uint8).fill(-1),
    ]
    for take in takes:
        with pytest.raises(OverflowError) as raised:
            take()
        assert '`pip install "numpy<2"`' in restored_arguments.way_out(raised.value)
    assert not restored_arguments.way_out(OverflowError("math range error"))
    assert not restored_arguments.way_out(ValueError("out of bounds for axis 0"))


def test_yaml_loads_without_a_loader() -> None:
    pytest.importorskip("yaml")
    as_own_file(
        "import yaml\n"
        "assert yaml.load('a: [1]') == {'a': [1]}\n"
        "assert list(yaml.load_all('1\\n---\\n2')) == [1, 2]\n"
        "assert yaml.load('a: !!x 1', Loader=yaml.BaseLoader) == {'a': '1'}\n"
    )
