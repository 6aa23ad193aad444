"""Idioms of TF1 programs with `from module import *`."""

from __future__ import annotations

from idiom import TF, Idiom

STARRED: dict[str, Idiom] = {
    "a starred import": Idiom(
        "from everything import *\narray_ops.unstack(tf.zeros([2]))\n",
        {"everything.py": TF + "from tensorflow.python.ops import array_ops\n"},
    ),
    "a starred import of other names for TensorFlow": Idiom(
        "from aliases import *\nv1_train.AdamOptimizer(0.1)\n"
        "Input('float32')\nflow.get_variable('from_star', [1])\n",
        {
            "aliases.py": "import tensorflow as flow\n"
            "from tensorflow import placeholder as Input\nv1_train = flow.train\n"
        },
    ),
    "bare names of a starred TensorFlow": Idiom(
        "import bare\n",
        {
            "bare.py": "from tensorflow import *\n"
            "x = placeholder(float32, [2])\n"
            "weights = contrib.layers.xavier_initializer()\n"
            "with Session() as session:\n"
            "    session.run(to_float(reduce_sum(x)), {x: [1, 2]})\n"
        },
    ),
    "bare names of a starred TensorFlow, beside its import": Idiom(
        "import beside\n",
        {
            "beside.py": TF + "from tensorflow import *\n"
            "from math import *\n"
            "size = log(2.0) + trunc(tf.get_variable('beside', [1]).shape[0].value)\n"
            "def total(x):\n    return reduce_sum(div(x, 2.0))\n"
            "total(tf.placeholder(float32))\n"
        },
    ),
    "a starred TensorFlow in another file": Idiom(
        "import takes_star, takes_name\n",
        {
            "has_star.py": "from tensorflow import *\n"
            "from tensorflow.contrib.layers import *\n",
            "takes_star.py": "from has_star import *\n"
            "l2_regularizer(0.1)\nplaceholder(float32)\n",
            "takes_name.py": "from has_star import xavier_initializer as init\n"
            "from has_star import to_float\ninit()\nto_float(1)\n",
        },
    ),
    "stars of stars, in a circle": Idiom(
        "import below\n",
        {
            "below.py": "from level_1a import *\nplaceholder(float32)\nto_float(1)\n",
            "level_1a.py": "from level_2 import *\nfrom level_1b import *\n",
            "level_1b.py": "from level_2 import *\nfrom level_1a import *\n",
            "level_2.py": "from tensorflow import *\nfrom level_1b import *\n",
        },
    ),
    "starred modules of TensorFlow": Idiom(
        "import star_modules\n",
        {
            "star_modules.py": "from tensorflow.train import *\n"
            "from tensorflow.contrib.rnn import *\n"
            "from tensorflow.contrib.image import *\n"
            "from tensorflow.python.ops.array_ops import *\n"
            "from tensorflow.logging import *\n"
            "AdamOptimizer(0.1)\nset_verbosity(ERROR)\nplaceholder('float32')\n"
            "static_rnn(BasicRNNCell(2), [placeholder('float32', [1, 2])],\n"
            "           dtype='float32')\n"
        },
    ),
    "a starred module that is tried": Idiom(
        "import tries_star\n",
        {
            "tries_star.py": "try:\n    from tensorflow.contrib.rnn import *\n"
            "except ImportError:\n    from tensorflow.nn.rnn_cell import *\n"
            + TF
            + "BasicRNNCell(2)\ntf.placeholder(tf.float32)\n"
        },
    ),
    "a starred NumPy": Idiom(
        "import star_numpy\n",
        {
            "star_numpy.py": "from tensorflow import *\nfrom numpy import *\n"
            "from collections import *\n"
            "zeros([2]).tolist(), product([2]), Mapping\n"
        },
    ),
    "a starred name that is removed": Idiom(
        "from tensorflow.contrib.image import *\nrotate(tf.zeros([1, 2, 2, 1]), 0.1)\n",
        runs=False,
    ),
    "a starred name of before 1.0": Idiom(
        "import oldest\n",
        {"oldest.py": "from tensorflow import *\nmul(1, 2)\n"},
        runs=False,
    ),
}
