"""What libraries did in the time of TensorFlow 1 and do not do today.

`hookbridge migrate rewrite` writes these names where no library has a replacement, and
`hookbridge run` answers with them:

    import hookbridge as hb

    hb.legacy.imsave("picture.png", array)

The names are looked up on first use: importing this package does not import TensorFlow.

Reading order: `pictures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookbridge.ground.lazy import attach

if TYPE_CHECKING:
    from hookbridge.legacy.pictures import bytescale as bytescale
    from hookbridge.legacy.pictures import imread as imread
    from hookbridge.legacy.pictures import imresize as imresize
    from hookbridge.legacy.pictures import imsave as imsave
    from hookbridge.legacy.pictures import toimage as toimage

_NAMES = ("bytescale", "imread", "imresize", "imsave", "toimage")
__all__, __getattr__, __dir__ = attach(
    __name__, dict.fromkeys(_NAMES, "hookbridge.legacy.pictures")
)
