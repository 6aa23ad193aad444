"""What libraries did in the time of TensorFlow 1 and do not do today.

`hookbridge migrate rewrite` writes these names where no library has a replacement, and
`hookbridge run` answers with them:

    import hookbridge as hb

    hb.legacy.imsave("picture.png", array)

The names are looked up on first use: importing this package does not import TensorFlow.

Reading order: `pictures` (SciPy), `numpy_arrays`, `numpy_functions`, `readers`
(TensorFlow), `shared_session` (Keras), and `removed_attributes` with `picture_methods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookbridge.ground.imports.lazy import attach

if TYPE_CHECKING:
    from hookbridge.legacy.numpy_arrays import array as array
    from hookbridge.legacy.numpy_arrays import asanyarray as asanyarray
    from hookbridge.legacy.numpy_arrays import asarray as asarray
    from hookbridge.legacy.numpy_functions import alen as alen
    from hookbridge.legacy.numpy_functions import asfarray as asfarray
    from hookbridge.legacy.numpy_functions import asscalar as asscalar
    from hookbridge.legacy.numpy_functions import in1d as in1d
    from hookbridge.legacy.numpy_functions import msort as msort
    from hookbridge.legacy.pictures import bytescale as bytescale
    from hookbridge.legacy.pictures import imread as imread
    from hookbridge.legacy.pictures import imresize as imresize
    from hookbridge.legacy.pictures import imsave as imsave
    from hookbridge.legacy.pictures import toimage as toimage
    from hookbridge.legacy.readers import (
        FixedLengthRecordReader as FixedLengthRecordReader,
    )
    from hookbridge.legacy.readers import IdentityReader as IdentityReader
    from hookbridge.legacy.readers import TextLineReader as TextLineReader
    from hookbridge.legacy.readers import TFRecordReader as TFRecordReader
    from hookbridge.legacy.readers import WholeFileReader as WholeFileReader
    from hookbridge.legacy.removed_attributes import attribute as attribute
    from hookbridge.legacy.shared_session import (
        share_keras_session as share_keras_session,
    )

__all__, __getattr__, __dir__ = attach(
    __name__,
    {
        "FixedLengthRecordReader": "hookbridge.legacy.readers",
        "IdentityReader": "hookbridge.legacy.readers",
        "TFRecordReader": "hookbridge.legacy.readers",
        "TextLineReader": "hookbridge.legacy.readers",
        "WholeFileReader": "hookbridge.legacy.readers",
        "alen": "hookbridge.legacy.numpy_functions",
        "array": "hookbridge.legacy.numpy_arrays",
        "asanyarray": "hookbridge.legacy.numpy_arrays",
        "asarray": "hookbridge.legacy.numpy_arrays",
        "asfarray": "hookbridge.legacy.numpy_functions",
        "asscalar": "hookbridge.legacy.numpy_functions",
        "attribute": "hookbridge.legacy.removed_attributes",
        "bytescale": "hookbridge.legacy.pictures",
        "imread": "hookbridge.legacy.pictures",
        "imresize": "hookbridge.legacy.pictures",
        "imsave": "hookbridge.legacy.pictures",
        "in1d": "hookbridge.legacy.numpy_functions",
        "msort": "hookbridge.legacy.numpy_functions",
        "share_keras_session": "hookbridge.legacy.shared_session",
        "toimage": "hookbridge.legacy.pictures",
    },
)
