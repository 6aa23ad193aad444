"""Callbacks of `tf.compat.v1.keras`, which Keras makes where a graph is the default."""

from __future__ import annotations

import dataclasses

from hookbridge import compat, errors
from hookbridge.adapters.guests.record import Guest

_V1 = "callbacks_v1"


def effective(guest: Guest) -> Guest:
    """The guest with the object whose methods are called: nearly always itself.

    While a graph is the default one, `tf.keras.callbacks.TensorBoard(...)` makes an
    object of `tf.compat.v1.keras`. That object would build its ops in the finalized
    graph of the session. So it is replaced by an object of the present class with the
    same options. It profiles the same batch too: the second, if none was named.
    """
    callback = guest.item
    kind = type(callback)
    v1 = [b for b in kind.__mro__ if b.__module__.endswith(_V1)]
    if not v1:
        return guest
    if kind is not v1[0]:
        raise errors.RefusedError(
            f"`{guest.name}` cannot run in a session loop: it was "
            "constructed while a graph was the default one, and Keras then derives it "
            "from the TensorBoard of `tf.compat.v1.keras`, which builds ops in the "
            "session while training runs. Construct it outside `graph.as_default()`.",
            see="callback in a session",
        )
    current = next(
        b
        for b in kind.__mro__
        if b.__name__ == "TensorBoard" and not b.__module__.endswith(_V1)
    )
    with compat.private("eager_mode")():
        called = current(
            log_dir=callback.log_dir,
            histogram_freq=callback.histogram_freq,
            write_graph=callback.write_graph,
            write_images=callback.write_images,
            update_freq=callback.update_freq,
            profile_batch=callback._profile_batch,
            embeddings_freq=callback.embeddings_freq,
            embeddings_metadata=callback.embeddings_metadata,
            # Keras warns that it no longer has these.
            write_grads=callback.write_grads,
            embeddings_layer_names=callback.embeddings_layer_names,
            embeddings_data=callback.embeddings_data is not None,
        )
    return dataclasses.replace(guest, called=called)
