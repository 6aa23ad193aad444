"""Methods that libraries removed: objects of the program have them again."""

from __future__ import annotations

from pathlib import Path

from fork_server import ForkServer
from launching import IS_215, ROOT, launch_fork

from hookbridge.old_programs import rewrite
from hookbridge.old_programs.scanning.scan import scan
from hookbridge.tf1_names import removed_in_libraries
from hookbridge.tf1_names.target import NEWEST


def test_a_lost_method_is_found_where_its_library_is_imported(tmp_path: Path) -> None:
    text = "import os\nos.path.getsize('a')\nfont.getsize('a')\n"
    found = []
    for name, first in (("with.py", "from PIL import ImageFont\n"), ("without.py", "")):
        (tmp_path / name).write_text(first + text)
        report = scan([tmp_path / name], target="2.21")
        found.append({(f.line, f.code, f.name) for f in report.findings})
    fonts = ("PIL.ImageFont.FreeTypeFont.getsize", "PIL.ImageFont.ImageFont.getsize")
    assert found == [{(4, "LOST_ATTRIBUTE", font) for font in fonts}, set()]


def test_assertions_have_their_old_names_again(
    tmp_path: Path, bare_launcher: ForkServer
) -> None:
    """A test of TensorFlow 1, and of what Python called its assertions then."""
    (tmp_path / "old_test.py").write_text(
        "import tensorflow as tf\n\n\n"
        "class OldTest(tf.test.TestCase):\n"
        "    def test_old_names(self):\n"
        "        self.assertEquals(1, 1)\n"
        "        self.assertNotEquals(1, 2)\n"
        "        self.assertAlmostEquals(0.1 + 0.2, 0.3)\n"
        "        self.assertNotAlmostEquals(0.1, 0.3)\n"
        "        self.assertItemsEqual([1, 2], [2, 1])\n"
        "        self.assertRegexpMatches('one', 'n')\n"
        "        self.assertNotRegexpMatches('one', 'x')\n"
        "        self.assert_(True)\n"
        "        self.failUnless(True)\n"
        "        self.failIf(False)\n"
        "        with self.assertRaisesRegexp(ValueError, 'literal'):\n"
        "            int('x')\n"
        "        with self.assertRaises(AssertionError):\n"
        "            self.assertEquals(1, 2)\n\n\n"
        "if __name__ == '__main__':\n    tf.test.main()\n"
    )
    ended = launch_fork(bare_launcher, "old_test.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "OK" in ended.stderr


def test_methods_that_keras_lost_come_back(
    tmp_path: Path, launcher: ForkServer
) -> None:
    """Under `run`, and rewritten: the method of today of the model's own class."""
    text = (
        "import numpy as np\nimport tensorflow as tf\n"
        "from tensorflow.keras.models import Sequential\n"
        "class Counting(tf.keras.layers.Layer):\n"
        "    def build(self, shape):\n"
        "        self.seen = self.add_weight('seen', (), trainable=False,\n"
        "                                    initializer='zeros')\n"
        "    def call(self, x):\n"
        "        self.add_update([tf.assign_add(self.seen, 1.0)], x)\n"
        "        return x\n"
        "def made(outputs):\n"
        "    dense = tf.keras.layers.Dense(outputs, kernel_initializer='ones')\n"
        "    return Sequential([Counting(input_shape=(3,)), dense])\n"
        "x = np.ones((2, 3), np.float32)\n"
        "one, two = made(1), made(2)\n"
        "print(one.predict_classes(x).tolist(), two.predict_classes(x).tolist())\n"
        "print(two.predict_proba(x).tolist(), one.predict_proba(-x, 2).tolist())\n"
        "two.compile('sgd', 'mse')\n"
        "two.fit(x, np.ones((2, 2)), batch_size=1, verbose=0)\n"
        "print(tf.keras.backend.get_value(two.layers[0].seen))\n"
        "strategy = tf.distribute.get_strategy()\n"
        "print(strategy.experimental_run_v2(lambda a: a + 1, args=(3,)))\n"
        "class Network(tf.keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self._layers.append(tf.keras.layers.Dense(1))\n"
        "print(len(Network().layers))\n"
        "print([type(layer).__name__ for layer in two._layers])\n"
        "del two._layers[-1]\n"
        "print(len(two.layers))\n"
    )
    expected = [
        "[[1], [1]] [0, 0]",
        "[[3.0, 3.0], [3.0, 3.0]] [[-3.0], [-3.0]]",
        "2.0",
        "4",
        "1",
        "['InputLayer', 'Counting', 'Dense']",
        "1",
    ]
    program = tmp_path / "program.py"
    program.write_text(text)
    done = launch_fork(launcher, str(program), cwd=tmp_path)
    assert done.stdout.splitlines() == expected, done.stderr
    rewritten = rewrite(text, target="2.15" if IS_215 else NEWEST)
    assert not rewritten.todos
    program.write_text(rewritten.source)
    done = launcher.run(str(program), folder=tmp_path, PYTHONPATH=str(ROOT))
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_lost_method_has_one_name_of_today() -> None:
    """A rewrite knows the method, and not of which library its object is."""
    for full in removed_in_libraries.removed_names():
        method = full.rpartition(".")[2]
        rows = [
            removed_in_libraries.removed_names()[name]
            for name in removed_in_libraries.removed_methods(method)
        ]
        assert len({row.replacement.rpartition(".")[2] for row in rows}) < 2, method
