"""What `BackupAndRestore` of Keras 3 saves of a session beside the weights.

In `Model.fit` its file holds the optimizer's variables too. In a session their place
is taken by the other variables of the graph: slots, beta powers, a learning rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import h5py
import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge.adapters.guests.record import Guest
from hookbridge.adapters.session_graph import variables as session_variables
from hookbridge.whole_files import replacing

_GROUP = "hookbridge_session"
_SUFFIX = ".weights.h5"


def paths(callbacks: Iterable[Guest]) -> frozenset[str]:
    """The weights files of the Keras 3 `BackupAndRestore`s among the callbacks."""
    return frozenset(
        str(guest.item._weights_path)
        for guest in callbacks
        if guest.stock == "BackupAndRestore" and hasattr(guest.item, "_weights_path")
    )


def part_of(path: str) -> str:
    """The path of a new backup until it replaces the last one."""
    return f"{path.removesuffix(_SUFFIX)}.part{_SUFFIX}"


def variables(graph: Any, weights: Sequence[Any]) -> list[Any]:
    """The variables of a checkpoint that are neither weights nor the global step."""
    # The step follows from the epoch at which the callback resumes.
    others = {id(v) for v in weights}
    others.add(id(tf.compat.v1.train.get_global_step(graph)))
    return [v for v in session_variables.saved_variables(graph) if id(v) not in others]


def complete(path: str, values: Mapping[str, Any]) -> None:
    """Adds values to the file `part_of(path)` and renames it to `path`."""
    part = part_of(path)
    with replacing(path, part), h5py.File(part, "a") as file:
        group = file.create_group(_GROUP)
        for index, (name, value) in enumerate(values.items()):
            group.create_dataset(str(index), data=np.asarray(value))
            group[str(index)].attrs["name"] = name


def load(path: str, wanted: Sequence[str]) -> dict[str, Any]:
    """What `complete` added; warns if some of `wanted` are not there."""
    with h5py.File(path, "r") as file:
        entries = file[_GROUP].values() if _GROUP in file else ()
        arrays = {str(e.attrs["name"]): np.asarray(e) for e in entries}
    missing = [name for name in wanted if name not in arrays]
    if missing:
        logging.warning(
            "hookbridge: the backup %s has no values for %s, which begin anew.",
            path,
            ", ".join(missing),
        )
    return {name: arrays[name] for name in wanted if name in arrays}
