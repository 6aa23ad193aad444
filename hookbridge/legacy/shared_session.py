"""The session of Keras as a package of its own: one for all threads."""

from __future__ import annotations

import threading
import types
from typing import Any

from hookbridge.ground import compat, patching
from hookbridge.ground.compat import LAST_WITH_KERAS2, tf_version


def share_keras_session() -> None:
    """Let all threads use the session of Keras 2 that one of them has set, or made.

    Until Keras 2.3, `K.set_session` was for all threads; the Keras of TensorFlow has a
    session for each thread, and makes another one where the default graph is another.
    The default graph of a thread is its own, and empty: such a thread gets the session
    that is there. Call this before the first model is made. It stays so until the
    process ends.
    """
    is_own = tf_version() > LAST_WITH_KERAS2
    backend = compat.private("tf_keras_backend" if is_own else "keras_backend")
    shared = types.SimpleNamespace(session=getattr(backend._SESSION, "session", None))
    session_for_graph = backend._get_session

    def session_for(op_input_list: Any = ()) -> Any:
        if shared.session is not None and _has_no_graph(op_input_list):
            return shared.session
        return session_for_graph(op_input_list)

    patching.assign(backend, _SESSION=shared, _get_session=session_for)


def _has_no_graph(inputs: Any) -> bool:
    """Return whether neither a thread nor these inputs show which graph is meant."""
    import tensorflow as tf

    if threading.current_thread() is threading.main_thread():
        return False
    if tf.compat.v1.get_default_session() is not None:
        return False
    if any(tf.is_tensor(value) for value in tf.nest.flatten(inputs)):
        return False
    return not tf.compat.v1.get_default_graph().get_operations()
