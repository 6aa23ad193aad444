import sys

import tensorflow as tf

OLD = tf.placeholder is not None


def library_sees():
    """What a module in site-packages gets: TensorFlow as it is."""
    real = sys.modules["tensorflow"]
    return [hasattr(real, "placeholder"), hasattr(real, "contrib")]


def fail():
    raise ValueError("of the program")
