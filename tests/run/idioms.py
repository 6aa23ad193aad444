"""Idioms of TF1 programs, from which whole programs are put together at random."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Idiom(NamedTuple):
    """A way in which programs are written.

    Attributes:
      main: its lines in the main file, which has imported `tensorflow as tf`.
      files: other files that it needs, `{path: text}`.
      runs: whether it ends without an error under `hookbridge run`.
    """

    main: str
    files: Mapping[str, str] = MappingProxyType({})
    runs: bool = True


_TF = "import tensorflow as tf\n"

IDIOMS: dict[str, Idiom] = {
    "an alias of a module": Idiom("ops_v1 = tf.train\nops_v1.Saver\n"),
    "names from tensorflow itself": Idiom(
        "from tensorflow import flags as own_flags, gfile\n"
        "own_flags.DEFINE_integer('number', 3, '')\ngfile.Exists('x')\n"
    ),
    "a guarded import": Idiom(
        "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle\n"
    ),
    "an import of today with an old one behind it": Idiom(
        "try:\n    import queue\nexcept ImportError:\n    import Queue as queue\n"
    ),
    "a guarded name": Idiom(
        "try:\n    up = tf.nn.conv2d_transpose\n"
        "except AttributeError:\n    up = tf.nn.deconv2d\n"
    ),
    "a branch for Python 2": Idiom(
        "import sys\nif sys.version_info[0] < 3:\n    reload(sys)\n    tf.pack([1])\n"
    ),
    "a branch for a version that a name keeps": Idiom(
        "major, minor = map(int, tf.__version__.split('.')[:2])\n"
        "if major < 1:\n    tf.pack([1])\n"
    ),
    "a function that leaves before": Idiom(
        "import sys\ndef stacked():\n    if sys.version_info >= (3,):\n"
        "        return tf.stack([1])\n    return tf.pack([1])\nstacked()\n"
    ),
    "imports that nothing uses": Idiom(
        "from tensorflow.contrib import image\n"
        "from tensorflow.python.ops.rnn_cell_impl import _linear\n"
        "from tensorflow.python.platform.no_such import thing\n"
    ),
    "a package with a relative import": Idiom(
        "from parts import first\n",
        {
            "parts/__init__.py": "",
            "parts/first.py": "from . import second\n",
            "parts/second.py": _TF + "x = tf.placeholder(tf.float32)\n",
        },
    ),
    "a starred import": Idiom(
        "from everything import *\narray_ops.unstack(tf.zeros([2]))\n",
        {"everything.py": _TF + "from tensorflow.python.ops import array_ops\n"},
    ),
    "a starred import of other names for TensorFlow": Idiom(
        "from aliases import *\nv1_train.AdamOptimizer(0.1)\n"
        "Input('float32')\nflow.get_variable('from_star', [1])\n",
        {
            "aliases.py": "import tensorflow as flow\n"
            "from tensorflow import placeholder as Input\nv1_train = flow.train\n"
        },
    ),
    "a folder in sys.path": Idiom(
        "import os, sys\n"
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\n"
        "import shared\n",
        {"lib/shared.py": _TF + "value = tf.get_variable('v', [1])\n"},
    ),
    "names under a graph of a module's own": Idiom(
        "import graphs\n",
        {
            "graphs.py": _TF + "with tf.Graph().as_default():\n"
            "    size = tf.get_variable('w', [2]).get_shape()[0].value + 1\n"
        },
    ),
    "names that NumPy and Python lost": Idiom(
        "import numpy as np\nfrom collections import Mapping\n"
        "np.zeros(1, np.float)\nnp.product([1])\n"
    ),
    "private names that moved": Idiom(
        "from tensorflow.python.framework import graph_util\n"
        "graph_util.convert_variables_to_constants\n"
        "from tensorflow.python.ops.control_flow_ops import cond\n"
    ),
    "successors in contrib": Idiom(
        "tf.contrib.util.make_tensor_proto([1.0])\n"
        "tf.contrib.distributions.Normal(0.0, 1.0)\n"
        "tf.contrib.signal.frame(tf.zeros([8]), 4, 2)\n"
    ),
    "files inside of contrib": Idiom(
        "from tensorflow.contrib.eager.python import tfe\n"
        "from tensorflow.contrib.staging.python.ops import data_flow_ops\n"
        "tfe.executing_eagerly()\n"
    ),
    "a name of contrib that is gone": Idiom(
        "tf.contrib.image.rotate(tf.zeros([1, 2, 2, 1]), 0.1)\n", runs=False
    ),
    "a private name that is gone": Idiom(
        "from tensorflow.python.ops.rnn_cell_impl import _linear\n_linear(1)\n",
        runs=False,
    ),
    "an import that only another file uses": Idiom(
        "import uses_it\n",
        {
            "has_it.py": _TF + "from tensorflow.contrib.image import rotate\n",
            "uses_it.py": "from has_it import rotate\nrotate(1, 2)\n",
        },
        runs=False,
    ),
    "a branch that is taken": Idiom(
        "import sys\nif sys.version_info[0] >= 3:\n    tf.mul(1, 2)\n", runs=False
    ),
    "a name of before 1.0": Idiom("tf.mul(1, 2)\n", runs=False),
    "a name that a library lacks": Idiom("from json import no_such\n", runs=False),
    "a module that a library lacks": Idiom("import numpy.no_such\n", runs=False),
    "both names are gone": Idiom(
        "try:\n    cell = tf.nn.seq2seq\n"
        "except AttributeError:\n    cell = tf.nn.rnn\n",
        runs=False,
    ),
}


def files_of(names: list[str]) -> dict[str, str]:
    """The files of the program that some idioms make, in this order."""
    files = {"main.py": _TF + "tf.placeholder(tf.float32)\n"}
    for name in names:
        files["main.py"] += IDIOMS[name].main
        files.update(IDIOMS[name].files)
    return files
