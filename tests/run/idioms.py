"""Idioms of TF1 programs, from which whole programs are put together at random."""

from __future__ import annotations

from idiom import TF, Idiom
from starred_idioms import STARRED

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
    "guarded names of which one handler tells nothing": Idiom(
        "try:\n    summary, pack = tf.scalar_summary, tf.pack\n"
        "    Nadam = tf.contrib.opt.NadamOptimizer\n"
        "except:\n    summary, pack = tf.summary.scalar, tf.stack\n"
        "    Nadam = tf.train.AdamOptimizer\n"
        "pack([1])\nNadam(0.1)\n"
    ),
    "a guarded name of contrib": Idiom(
        "try:\n    slower = tf.contrib.opt.AdaMaxOptimizer(0.1)\n"
        "except AttributeError:\n    slower = None\nassert slower is None\n"
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
            "parts/second.py": TF + "x = tf.placeholder(tf.float32)\n",
        },
    ),
    **STARRED,
    "TensorFlow that a call imports": Idiom(
        "import loads, loads_in_function\n",
        {
            "loads.py": "import importlib\n"
            "flow = importlib.import_module('tensorflow')\n"
            "slim = importlib.import_module('tensorflow.contrib.slim')\n"
            "core = importlib.import_module('.core', 'tensorflow.python.layers')\n"
            "regularizer = slim.l2_regularizer(0.1)\n"
            "flow.get_variable('loaded', [1], regularizer=regularizer)\n"
            "__import__('tensorflow').placeholder('float32'), core.Dense\n",
            "loads_in_function.py": "from importlib import import_module\n"
            "def build():\n    flow = import_module('tensorflow')\n"
            "    try:\n        found = import_module('tensorflow.contrib.image')\n"
            "    except ImportError:\n        found = None\n"
            "    return flow.to_float(flow.Session.__name__ and 1)\nbuild()\n",
        },
    ),
    "a module that a call imports": Idiom(
        "import importlib\nimportlib.import_module('by_call').total(tf.zeros([2]))\n",
        {
            "by_call.py": "tf = __import__('tensorflow')\n"
            "def total(x):\n    return tf.reduce_sum(tf.to_float(x))\n"
        },
    ),
    "names through a module": Idiom(
        "import shared_names\nimport pack.names\n"
        "shared_names.flow.get_variable('through', [1])\n"
        "shared_names.layers.l2_regularizer(0.1)\n"
        "pack.names.placeholder('float32')\n",
        {
            "shared_names.py": "import tensorflow as flow\n"
            "from tensorflow.contrib import layers\n",
            "pack/__init__.py": "",
            "pack/names.py": "from tensorflow import *\n",
        },
    ),
    "a removed name that a call imports": Idiom(
        "import importlib\n"
        "importlib.import_module('tensorflow').contrib.image.rotate(1, 2)\n",
        runs=False,
    ),
    "a removed name through a module": Idiom(
        "import through_gone\nthrough_gone.tf.sub(1, 2)\n",
        {"through_gone.py": TF},
        runs=False,
    ),
    "a folder in sys.path": Idiom(
        "import os, sys\n"
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\n"
        "import shared\n",
        {"lib/shared.py": TF + "value = tf.get_variable('v', [1])\n"},
    ),
    "names under a graph of a module's own": Idiom(
        "import graphs\n",
        {
            "graphs.py": TF + "with tf.Graph().as_default():\n"
            "    size = tf.get_variable('w', [2]).get_shape()[0].value + 1\n"
        },
    ),
    "names that NumPy and Python removed": Idiom(
        "import numpy as np\nfrom collections import Mapping\n"
        "np.zeros(1, np.float)\nnp.product([1])\n"
    ),
    "private names that moved": Idiom(
        "from tensorflow.python.framework import graph_util\n"
        "graph_util.convert_variables_to_constants\n"
        "from tensorflow.python.ops.control_flow_ops import cond\n"
        "from tensorflow.python.layers.convolutional import deconv2d\n"
        "deconv2d(tf.zeros([1, 2, 2, 1]), 1, 2)\n"
        "from tensorflow.python.ops import variable_scope\n"
        "variable_scope.variable(1.0)\n"
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
    "imports of what libraries removed, that nothing uses": Idiom(
        "from json import no_such, loads\nimport numpy.no_such\nloads('1')\n"
        "import helps\nhelps.one()\n",
        {
            "helps.py": "from json import no_such as nothing\n"
            "from json.decoder import no_such as none\ndef one():\n    return 1\n"
        },
    ),
    "private modules that moved": Idiom(
        "from tensorflow.python.distribute import all_reduce\n"
        "from tensorflow.python.training.tracking.base import Trackable\n"
        "import tensorflow.python.training.distribute as distribute_lib\n"
        "all_reduce.build_ring_all_reduce, Trackable()\n"
        "distribute_lib.get_replica_context()\n"
    ),
    "a TPU without a name": Idiom(
        "tf.flags.DEFINE_string('tpu', '', 'a TPU')\n"
        "Resolver = tf.contrib.cluster_resolver.TPUClusterResolver\n"
        "tf.contrib.cluster_resolver.TPUClusterResolver('')\n"
        "def resolver(flags):\n"
        "    Resolver(tpu=flags.tpu if flags.tpu else '')\n"
        "resolver(tf.flags.FLAGS(['x']) and tf.flags.FLAGS)\n"
    ),
    "Variable of version 2": Idiom(
        "import tensorflow.contrib.eager as tfe\n"
        "from tensorflow.contrib.eager import Variable\n"
        "from tensorflow.compat import v2 as tf2\n"
        "tfe.Variable(1.0).value().name, Variable(1.0, name='of_v2').handle\n"
        "assert Variable is tfe.Variable is tf2.Variable\n"
    ),
    "modules that a private module imports": Idiom(
        "from tensorflow.python.ops.nn import array_ops as made, rnn_cell\n"
        "from tensorflow.python.training.saver import context, np as arrays\n"
        "made.zeros([1]), rnn_cell, context.context(), arrays.zeros(1)\n"
    ),
    "classes in files of slim": Idiom(
        "from tensorflow.contrib.slim.python.slim.data import tfexample_decoder\n"
        "from tensorflow.contrib.slim.python.slim.data.dataset import Dataset\n"
        "tfexample_decoder.ItemHandlerCallback([], print)\n"
        "tfexample_decoder.TFExampleDecoder({}, {}), Dataset(1, 2, 3, 4, {})\n"
    ),
    "contrib of a program that a person has begun to upgrade": Idiom(
        "import tensorflow.compat.v1 as tf1\nfrom tensorflow.compat import v1\n"
        "assert tf1.contrib.rnn is tf.contrib.rnn\n"
        "assert v1.Session is tf1.Session is tf.compat.v1.Session\n"
    ),
    "names that files of contrib handed on": Idiom(
        "from tensorflow.contrib.tpu.python.tpu import tpu_function\n"
        "from tensorflow.contrib.tpu.python.tpu.tpu_function import TpuContext\n"
        "from tensorflow.contrib.all_reduce.python import all_reduce\n"
        "import tensorflow.contrib.quantization.python.math_ops as quantized\n"
        "assert isinstance(tpu_function.get_tpu_context(), TpuContext)\n"
        "all_reduce.build_ring_all_reduce, quantized.add_n([1.0, 2.0])\n"
        "tf.contrib.factorization.KMeans([tf.ones([4, 2])], 2).training_graph()\n"
    ),
    "names that another file gives to TensorFlow": Idiom(
        "import gives\nimport takes\nassert tf.mul(2, 3) == 6 == takes.product()\n",
        {
            "gives.py": "import tensorflow as tf\n"
            "tf.mul = lambda a, b: a * b\nsetattr(tf, 'pack', list)\n",
            "takes.py": "import tensorflow as tf\n"
            "def product():\n    return tf.mul(*tf.pack((2, 3)))\n",
        },
    ),
    "names of contrib that are listed": Idiom(
        "assert 'Normal' in dir(tf.contrib.distributions)\n"
        "assert {'layers', 'slim'} <= set(dir(tf.contrib))\n"
        "import inspect\nfrom tensorflow.contrib import rnn\n"
        "cells = dict(inspect.getmembers(rnn, inspect.isclass))\n"
        "assert issubclass(cells['GRUCell'], rnn.RNNCell)\n"
        "assert hasattr(rnn, 'HighwayWrapper') is ('HighwayWrapper' in dir(rnn))\n"
        "shown = {n for n, v in vars(rnn).items() if inspect.isclass(v)}\n"
        "assert shown == {*cells} and cells['GRUCell'] in rnn.__dict__.values()\n"
        "assert set(vars(rnn)) == {name for name, _ in inspect.getmembers(rnn)}\n"
        "assert tf.__dict__['float32'] is tf.float32\n"
    ),
    "old calls in a file without TensorFlow": Idiom(
        "import reads\nassert reads.flat('[[1], [2]]').shape == (2,)\n",
        {
            "reads.py": "import numpy as np\nimport yaml\ndef flat(text):\n"
            "    return np.reshape(yaml.load(text), newshape=[-1])\n"
        },
    ),
    "files that are loaded by their paths": Idiom(
        "import importlib.util, runpy\n"
        "from importlib.machinery import SourceFileLoader\n"
        "at = importlib.util.spec_from_file_location('one', 'settings_1.py')\n"
        "one = importlib.util.module_from_spec(at)\nat.loader.exec_module(one)\n"
        "two = SourceFileLoader('two', 'settings_2.py').load_module()\n"
        "given = runpy.run_path('settings_3.py', {'size': 3}, 'three')\n"
        "assert (one.cell, two.name) == (tf.nn.rnn_cell.LSTMCell, 'two')\n"
        "assert given['x'].shape[1].value == 3 and given['__name__'] == 'three'\n",
        {
            "settings_1.py": TF + "cell = tf.nn.rnn_cell.LSTMCell\n",
            "settings_2.py": TF + "x, name = tf.placeholder(tf.int32), __name__\n",
            "settings_3.py": TF + "x = tf.placeholder(tf.int32, [1, size])\n",
        },
    ),
    "a name of contrib that is removed": Idiom(
        "tf.contrib.image.rotate(tf.zeros([1, 2, 2, 1]), 0.1)\n", runs=False
    ),
    "a private name that is removed": Idiom(
        "from tensorflow.python.ops.rnn_cell_impl import _linear\n_linear(1)\n",
        runs=False,
    ),
    "an import that only another file uses": Idiom(
        "import uses_it\n",
        {
            "has_it.py": TF + "from tensorflow.contrib.image import rotate\n",
            "uses_it.py": "from has_it import rotate\nrotate(1, 2)\n",
        },
        runs=False,
    ),
    "a branch that is taken": Idiom(
        "import sys\nif sys.version_info[0] >= 3:\n    tf.sub(1, 2)\n", runs=False
    ),
    "a name of before 1.0": Idiom("tf.sub(1, 2)\n", runs=False),
    "a name that a library lacks": Idiom(
        "from json import not_there\nnot_there(1)\n", runs=False
    ),
    "a package that is not installed": Idiom(
        "from other_of_nobody import thing\nthing()\n", runs=False
    ),
    "a module that a library lacks": Idiom(
        "import numpy.not_there\nnumpy.not_there.add(1)\n", runs=False
    ),
    "both names are removed": Idiom(
        "try:\n    cell = tf.nn.seq2seq\n"
        "except AttributeError:\n    cell = tf.nn.rnn\n",
        runs=False,
    ),
}


def files_of(names: list[str]) -> dict[str, str]:
    """The files of the program that some idioms make, in this order."""
    files = {"main.py": TF + "tf.placeholder(tf.float32)\n"}
    for name in names:
        files["main.py"] += IDIOMS[name].main
        files.update(IDIOMS[name].files)
    return files
