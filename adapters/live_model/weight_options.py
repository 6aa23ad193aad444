"""The options of `save_weights` and `load_weights` on a bare graph."""

from __future__ import annotations

from typing import Any

from hookbridge import errors
from hookbridge.adapters.live_model import weight_files


def as_h5(path: str, save_format: Any) -> bool:
    """Whether weights are written as HDF5, by Keras 2's rules.

    Raises:
      errors.InvalidArgumentError: Keras has no such format, or not for this name.
    """
    if save_format is None:
        return weight_files.is_h5(path)
    name = save_format.lower().strip() if isinstance(save_format, str) else None
    if name in ("h5", "hdf5", "keras"):
        return True
    if name in ("tf", "tensorflow") and not weight_files.is_h5(path):
        return False
    raise errors.InvalidArgumentError(
        f'`save_weights("{path}", save_format={save_format!r})`: expected "h5", or '
        '"tf" with a name that does not end in .h5, .hdf5 or .keras.'
    )


def unsupported(options: Any) -> str:
    """What a `tf.train.CheckpointOptions` asks for that a bare graph's files have not.

    The process that calls the callback writes the file, in one piece, before the next
    event; there are no slot variables in it.
    """
    import tensorflow as tf

    for name in ("experimental_write_callbacks", "experimental_sharding_callback"):
        if getattr(options, name, None):
            return name
    device = getattr(options, "experimental_io_device", None)
    if device and tf.DeviceSpec.from_string(device).job not in (None, "localhost"):
        return f"experimental_io_device={device!r}"
    return ""


def check(method: str, options: Any, others: dict[str, Any]) -> None:
    """Refuses what would have no effect.

    Args:
      method: "save_weights" or "load_weights".
      options: a `tf.train.CheckpointOptions`, or None.
      others: further keyword arguments.

    Raises:
      errors.LiveModelError: names the first of them.
    """
    names = [name for name, value in others.items() if value is not None]
    if options is not None and (found := unsupported(options)):
        names.append(found)
    if names:
        raise errors.LiveModelError(
            f"`model.{method}` was called with `{names[0]}`, but this callback runs in "
            "a session loop under hookbridge, where the weights of a bare graph are "
            "one file and this option has no effect. Leave it out, or give the "
            "tf.keras/tf_keras model of the graph as `as_hooks(..., model=model)`."
        )
