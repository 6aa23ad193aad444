"""Callbacks of `tf.compat.v1.keras`, which Keras makes where a graph is the default."""

from __future__ import annotations

import dataclasses
from typing import Any

from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.ground import compat

_V1 = "callbacks_v1"


def with_present_class(guest: Guest) -> Guest:
    """Return the guest with the object whose methods are called: nearly always itself.

    A `TensorBoard` that is made while a graph is the default one is of
    `tf.compat.v1.keras`, and would build ops in the session's final graph. One of the
    present class with the same options takes its place, and profiles the same batch:
    the second, if none was named. An object of a user's subclass stays and gets the
    present base class, as from Keras itself outside a graph.
    """
    callback = guest.item
    kind: Any = type(callback)
    v1 = [b for b in kind.__mro__ if b.__module__.endswith(_V1)]
    if not v1:
        return guest
    current: Any = next(
        b
        for b in kind.__mro__
        if b.__name__ == "TensorBoard" and not b.__module__.endswith(_V1)
    )
    options = {
        "log_dir": callback.log_dir,
        "histogram_freq": callback.histogram_freq,
        "write_graph": callback.write_graph,
        "write_images": callback.write_images,
        "update_freq": callback.update_freq,
        "profile_batch": callback._profile_batch,
        "embeddings_freq": callback.embeddings_freq,
        "embeddings_metadata": callback.embeddings_metadata,
        # Keras warns that it no longer has these.
        "write_grads": callback.write_grads,
        "embeddings_layer_names": callback.embeddings_layer_names,
        "embeddings_data": callback.embeddings_data is not None,
    }
    with compat.private("eager_mode")():
        if kind is v1[0]:
            return dataclasses.replace(guest, called=current(**options))
        kind.__new__(kind)  # changes the base class
        current.__init__(callback, **options)
    return guest
