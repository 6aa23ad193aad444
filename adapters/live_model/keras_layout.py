"""Where Keras looks for the weights of a layer in a `.weights.h5` file.

Keras goes through a model's layers and looks each one up by its class:
`layers/dense/vars/0`, `layers/dense_1/vars/0` (Keras 3), or the same under
`_layer_checkpoint_dependencies` (Keras 2.15 and tf_keras). A bare graph has variables
and no classes. The usual layers are recognised by their variables' names and ranks,
which `tf.compat.v1.layers`, Keras and most users' code have in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

CONTAINERS = ("layers", "_layer_checkpoint_dependencies")

# Names of a layer's variables -> its class, by the rank of the first variable.
_BY_RANK: dict[frozenset[str], dict[int, str]] = {
    frozenset({"kernel"}): {2: "dense", 3: "conv1d", 4: "conv2d", 5: "conv3d"},
    frozenset({"depthwise_kernel"}): {3: "depthwise_conv1d", 4: "depthwise_conv2d"},
    frozenset({"embeddings"}): {2: "embedding"},
}
_NORMS = {"gamma", "beta"}
_AVERAGES = {"moving_mean", "moving_variance"}


def layer_class(name: str, weights: Mapping[str, Any]) -> str:
    """What Keras calls a layer with these weights."""
    last = [n.rpartition("/")[2].removesuffix(":0") for n in weights]
    names = frozenset(last)
    for known, by_rank in _BY_RANK.items():
        if known <= names <= known | {"bias"}:
            first = list(weights.values())[last.index(next(iter(known)))]
            found = by_rank.get(len(first.shape))
            if found:
                return found
    if _AVERAGES <= names <= _AVERAGES | _NORMS:
        return "batch_normalization"
    if names and names <= _NORMS:
        return "layer_normalization"
    return re.sub(r"_\d+$", "", name.rpartition("/")[2])


def layer_paths(layers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The name of each layer in the file's containers, `{scope: name}`."""
    used: dict[str, int] = {}
    paths = {}
    for scope, weights in layers.items():
        name = layer_class(scope, weights)
        number = used.get(name, 0)
        used[name] = number + 1
        paths[scope] = f"{name}_{number}" if number else name
    return paths
