"""What `BackupAndRestore` of Keras 3 saves of a session: all its variables, by name.

In `Model.fit` its file holds the optimizer's variables too. A session's slots, beta
powers and learning rate take their place. Only the callback itself reads this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from absl import logging

from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.live_model import weight_files
from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph import saved, session_variables
from hookbridge.adapters.session_graph.saved import SavedArray
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph


def paths(callbacks: Iterable[Guest]) -> frozenset[str]:
    """Return the weights files of the Keras 3 `BackupAndRestore`s in a list."""
    return frozenset(
        str(guest.item._weights_path)
        for guest in callbacks
        if guest.keras_row.is_backup and hasattr(guest.item, "_weights_path")
    )


def save(path: str, weights: LiveWeights, rates: LiveRates, graph: Graph) -> None:
    """Write the variables and the one rate that no variable holds."""
    values = weights.entries(_variables(graph))
    for name, rate in rates.unsaved().items():
        values[SavedArray(name, "", name)] = rate.read()
    weight_files.save(path, values, h5=True)


def load(path: str, weights: LiveWeights, rates: LiveRates, graph: Graph) -> None:
    """Set what `save` has written; warn of what is not there."""
    wanted = saved.entries_of(_variables(graph))
    unsaved = {
        SavedArray(name, "", name): rate for name, rate in rates.unsaved().items()
    }
    values = weight_files.load(path, [*wanted, *unsaved], lenient=True)
    missing = [e.variable for e in (*wanted, *unsaved) if e not in values]
    if missing:
        logging.warning(
            "hookbridge: the backup %s has no values for %s, which keep the values "
            "that they have in the session.",
            path,
            ", ".join(missing),
        )
    present = [entry for entry in wanted if entry in values]
    weights.write([wanted[e] for e in present], [values[e] for e in present])
    for entry, rate in unsaved.items():
        if entry in values:
            rate.set(values[entry])


def _variables(graph: Graph) -> list[Any]:
    # The step follows from the epoch at which the callback resumes.
    step = collected.global_step(graph)
    return [v for v in session_variables.saved_variables(graph) if v is not step]
