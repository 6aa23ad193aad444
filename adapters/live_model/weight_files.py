"""Weights of a bare graph as files that load back: HDF5 or a TF1 checkpoint."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Collection, Mapping
from typing import Any

import h5py
import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph import saved
from hookbridge.adapters.session_graph.saved import SavedArray
from hookbridge.ground.whole_files import replacing

_H5 = (".h5", ".keras", ".hdf5")


def is_h5(path: str) -> bool:
    """Return whether Keras would write HDF5 weights under this name."""
    return path.endswith(_H5)


def as_h5(path: str, save_format: object) -> bool:
    """Return whether weights are written as HDF5, by Keras 2's rules."""
    if save_format is None:
        return is_h5(path)
    name = save_format.lower().strip() if isinstance(save_format, str) else None
    if name in ("h5", "hdf5", "keras"):
        return True
    if name in ("tf", "tensorflow") and not is_h5(path):
        return False
    raise errors.InvalidArgumentError(
        f'`save_weights("{path}", save_format={save_format!r})`: expected "h5", or '
        '"tf" with a name that does not end in .h5, .hdf5 or .keras.'
    )


def unsupported(options: object) -> str:
    """Return the first part of `CheckpointOptions` that has no effect here."""
    # The process that calls the callback writes the file, in one piece, before the next
    # event. Empty if every part has its effect.
    for name in ("experimental_write_callbacks", "experimental_sharding_callback"):
        if getattr(options, name, None):
            return name
    device = getattr(options, "experimental_io_device", None)
    if device and tf.DeviceSpec.from_string(device).job not in (None, "localhost"):
        return f"experimental_io_device={device!r}"
    return ""


def check_options(method: str, options: object, others: dict[str, Any]) -> None:
    """Refuse options of `save_weights` and `load_weights` without effect."""
    names = [name for name, value in others.items() if value is not None]
    if options is not None and (option := unsupported(options)):
        names.append(option)
    if names:
        raise errors.LiveModelError(
            f"`model.{method}` was called with `{names[0]}`, but this callback runs in "
            "a session loop under hookbridge, where the weights of a bare graph are "
            "one file and this option has no effect. Leave it out, or give the "
            "tf.keras/tf_keras model of the graph as `as_hooks(..., model=model)`.",
            see="model in a session",
        )


def save(
    path: str, weights: Mapping[SavedArray, Any], overwrite: bool = True, *, h5: bool
) -> None:
    """Write weights by name.

    An HDF5 file has the layout of Keras 2, which every Keras loads into a model with
    equal layers, and in a file `*.weights.h5` links to the layers that `layer_class`
    knows. A TF1 checkpoint gets a `checkpoint` file beside it, as from `save_weights`
    of Keras 2.

    Args:
      path: the file, or the prefix of the checkpoint; its folder is made.
      weights: `{where it is saved: array}`, each of the shape of its variable.
      overwrite: whether a file there may be replaced.
      h5: whether to write HDF5 and not a checkpoint.

    Raises:
      errors.UnwritableError: it exists, and `overwrite` is False.
    """
    present = path if h5 else f"{path}.index"
    if not overwrite and os.path.exists(present):
        raise errors.UnwritableError(
            f"`{path}` exists and `overwrite` is False. Give another path."
        )
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    if h5:
        _save_h5(path, {entry.variable: value for entry, value in weights.items()})
    else:
        saved.write(path, weights)
        tf.compat.v1.train.update_checkpoint_state(folder or ".", path)


def load(
    path: str, entries: Collection[SavedArray], *, lenient: bool = False
) -> dict[SavedArray, Any]:
    """Read weights by name.

    Args:
      path: an HDF5 file, or the prefix of a checkpoint.
      entries: where the variables are saved.
      lenient: whether entries may be missing there.

    Returns:
      `{entry: array}`, each of the shape that was saved.

    Raises:
      errors.InvalidArgumentError: an entry is missing.
    """
    # As in Keras 2, the files on disk tell the format of a name without an ending.
    h5 = is_h5(path) or (os.path.isfile(path) and not os.path.exists(f"{path}.index"))
    arrays = _load_h5(path) if h5 else {}
    values = (
        {e: arrays[e.variable] for e in entries if e.variable in arrays}
        if h5
        else saved.read(path, entries)
    )
    missing = [e.variable for e in entries if e not in values]
    if missing and not lenient:
        present = arrays if h5 else dict(tf.train.list_variables(path))
        raise errors.InvalidArgumentError(
            f"`{path}` has no weights for {', '.join(missing)}; it has "
            f"{', '.join(sorted(present)) or 'none'}. Load a file that was saved from "
            "a graph with the same variable names."
        )
    return values


def _save_h5(path: str, weights: Mapping[str, Any]) -> None:
    """Write weights in the form of Keras 2, one group for each layer."""
    layers: dict[str, dict[str, Any]] = {}
    for name, value in weights.items():
        scope, _, leaf = name.rpartition("/")
        layers.setdefault(scope or leaf, {})[f"{name}:0"] = value
    # Renamed when it is complete: a run that is killed leaves the old file whole.
    part = f"{path}.part"
    with replacing(path, part), h5py.File(part, "w") as file:
        file.attrs["layer_names"] = [n.encode() for n in layers]
        file.attrs["backend"] = b"tensorflow"
        for layer, entries in layers.items():
            # A scope may be part of a longer scope, whose group exists already.
            group = file.require_group(layer)
            group.attrs["weight_names"] = [n.encode() for n in entries]
            for name, value in entries.items():
                group.create_dataset(name, data=np.asarray(value))
        if path.endswith(".weights.h5"):
            _link_as_keras(file, layers)


def _link_as_keras(file: Any, layers: Mapping[str, Mapping[str, Any]]) -> None:
    """Link the arrays to where Keras looks for them in a file `*.weights.h5`."""
    file.require_group("vars")
    for layer, inner in layer_paths(layers).items():
        arrays = [file[layer][name] for name in layers[layer]]
        for container in _CONTAINERS:
            target = file.require_group(f"{container}/{inner}/vars")
            for index, array in enumerate(arrays):
                target[str(index)] = array


def _load_h5(path: str) -> dict[str, Any]:
    arrays = {}
    with h5py.File(path, "r") as file:
        for layer in file.attrs["layer_names"]:
            group = file[tf.compat.as_text(layer)]
            for name in group.attrs["weight_names"]:
                key = tf.compat.as_text(name)
                arrays[key.removesuffix(":0")] = np.asarray(group[key])
    return arrays


# Where Keras looks for layers, each by its class: `layers/dense/vars/0` (Keras 3), or
# the same under the other name (Keras 2.15 and tf_keras).
_CONTAINERS = ("layers", "_layer_checkpoint_dependencies")

# Names of a layer's variables -> its class, by the rank of the first variable.
_BY_RANK: dict[frozenset[str], dict[int, str]] = {
    frozenset({"kernel"}): {2: "dense", 3: "conv1d", 4: "conv2d", 5: "conv3d"},
    frozenset({"depthwise_kernel"}): {3: "depthwise_conv1d", 4: "depthwise_conv2d"},
    frozenset({"embeddings"}): {2: "embedding"},
}
_NORMS = {"gamma", "beta"}
_AVERAGES = {"moving_mean", "moving_variance"}


def layer_class(name: str, weights: Mapping[str, Any]) -> str:
    """Return what Keras calls a layer with these weights."""
    # A bare graph has no classes. The names and ranks of the usual layers' variables
    # are the same in `tf.compat.v1.layers`, Keras and most users' code.
    leaves = [n.rpartition("/")[2].removesuffix(":0") for n in weights]
    names = frozenset(leaves)
    for usual, by_rank in _BY_RANK.items():
        if usual <= names <= usual | {"bias"}:
            first = list(weights.values())[leaves.index(next(iter(usual)))]
            kind = by_rank.get(len(first.shape))
            if kind:
                return kind
    if _AVERAGES <= names <= _AVERAGES | _NORMS:
        return "batch_normalization"
    if names and names <= _NORMS:
        return "layer_normalization"
    return re.sub(r"_\d+$", "", name.rpartition("/")[2])


def layer_paths(layers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the name of each layer in the file's containers, `{scope: name}`."""
    used = collections.Counter[str]()
    paths = {}
    for scope, weights in layers.items():
        name = layer_class(scope, weights)
        paths[scope] = f"{name}_{used[name]}" if used[name] else name
        used[name] += 1
    return paths
