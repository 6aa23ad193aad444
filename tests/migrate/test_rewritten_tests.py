"""Files of tests that are rewritten pass: the switch stands where their process starts.

pytest imports `conftest.py` first, and calls the functions of files that only define.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_server import ForkServer
from migrate_command import in_place

ONE_TENSORFLOW = True
LIBRARY = """\
import tensorflow as tf

def distances(x):
    return tf.reduce_sum(tf.square(x), axis=1, keepdims=True)
"""
TEST = """\
import numpy as np
import tensorflow as tf
from lib import distances

def test_distances():
    result = distances(np.ones([2, 3], np.float32))
    with tf.Session() as session:
        assert session.run(result).shape == (2, 1)
"""
SWITCH = "disable_v2_behavior()"


def written(folder: Path, **texts: str) -> dict[str, str]:
    """Writes files, rewrites them, and returns their new texts."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    in_place(folder)
    assert not any(done.result.changed for done in in_place(folder))
    return {name: (folder / f"{name}.py").read_text() for name in texts}


@pytest.mark.parametrize(
    ("conftest", "where"),
    [
        (None, {"test_one", "two_test"}),
        ("import sys\n", {"conftest"}),
        ("import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()\n", {"conftest"}),
        ("import tensorflow as tf\nfrom lib import distances\n", {"conftest"}),
    ],
    ids=["none", "without TensorFlow", "with its switch", "with the library"],
)
def test_the_switch_stands_where_the_process_starts(
    conftest: str | None, where: set[str], tmp_path: Path
) -> None:
    more = {} if conftest is None else {"conftest": conftest}
    texts = written(tmp_path, lib=LIBRARY, test_one=TEST, two_test=TEST, **more)
    assert {name for name, text in texts.items() if SWITCH in text} == where
    assert all(text.count(SWITCH) <= 1 for text in texts.values())


def test_a_conftest_above_the_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text(TEST)
    texts = written(tmp_path, lib=LIBRARY, conftest="")
    assert SWITCH in texts["conftest"]
    assert SWITCH not in (tmp_path / "tests" / "test_one.py").read_text()


def test_tests_of_tensorflow_2_get_no_switch(tmp_path: Path) -> None:
    text = "import tensorflow as tf\ndef test_one():\n    assert tf.constant(1) == 1\n"
    assert written(tmp_path, test_one=text)["test_one"] == text


@pytest.mark.slow
def test_rewritten_tests_pass(fork_server: ForkServer, tmp_path: Path) -> None:
    written(tmp_path, lib=LIBRARY, test_one=TEST)
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py")
    done = fork_server.run(*arguments, folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_rewritten_folder_of_unittest_passes(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    """`python -m unittest` reads no `conftest.py`; each module has the switch."""
    text = (
        "import tensorflow.compat.v1 as tf\n\n\n"
        "class SumTest(tf.test.TestCase):\n"
        "    def test_sum(self):\n"
        "        x = tf.placeholder(tf.float32, [2])\n"
        "        with self.test_session() as session:\n"
        "            total = session.run(tf.reduce_sum(x), {x: [1, 2]})\n"
        "        self.assertEquals(total, 3.0)\n"
    )
    texts = written(tmp_path, one_test=text, two_test=text)
    assert all(new.count(SWITCH) == 1 for new in texts.values())
    done = fork_server.run("-m", "unittest", "one_test", "two_test", folder=tmp_path)
    assert done.returncode == 0 and "OK" in done.stderr, done.stderr


@pytest.mark.slow
def test_a_package_that_loads_tensorflow_before_its_main_file_chooses_keras(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    """`python -m` imports the packages above the file first."""
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    for file, text in {
        "../__init__.py": "",
        "__init__.py": "from outer.inner.net import made\n",
        "net.py": (
            "import tensorflow as tf\nfrom tensorflow.keras import layers\n\n\n"
            "def made(x):\n    return layers.Dense(2)(x)\n"
        ),
        "train.py": (
            "import tensorflow as tf\nfrom outer.inner.net import made\n\n"
            "print(made(tf.placeholder(tf.float32, [3, 4])).shape)\n"
        ),
    }.items():
        (package / file).write_text(text)
    in_place(tmp_path)
    switch = "TF_USE_LEGACY_KERAS"
    files = {file.name for file in package.iterdir() if switch in file.read_text()}
    assert files == {"__init__.py", "train.py"}
    assert not any(done.result.changed for done in in_place(tmp_path))
    done = fork_server.run("-m", "outer.inner.train", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "(3, 2)\n"), done.stderr
