"""The session of Keras as a package of its own: one for all threads."""

from __future__ import annotations

import types

from hookbridge.ground import compat, patching
from hookbridge.ground.compat import LAST_WITH_KERAS2, tf_version


def share_keras_session() -> None:
    """Let all threads use the session of Keras 2 that one of them has set, or made.

    Until Keras 2.3, `K.set_session` was for all threads; the Keras of TensorFlow has a
    session for each thread. Call this before the first model is made. It stays so until
    the process ends.
    """
    is_own = tf_version() > LAST_WITH_KERAS2
    backend = compat.private("tf_keras_backend" if is_own else "keras_backend")
    session = getattr(backend._SESSION, "session", None)
    patching.assign(backend, _SESSION=types.SimpleNamespace(session=session))
