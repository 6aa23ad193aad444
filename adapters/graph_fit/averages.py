"""What Keras's loop returns when a hook stops it before its data ends."""

from __future__ import annotations

from typing import Any

from hookbridge import compat
from hookbridge.patching import assign


def end_with_this_batch() -> None:
    """Lets the running loop average over the batches that have run.

    Keras would divide the loss by the number of samples or steps that it expected, and
    return an array with room for all predictions.
    """
    names = compat.running_locals("graph_fit_arrays", "graph_fit_generator")
    if names is None:
        return  # one step alone, as in `train_on_batch`
    aggregator: Any = names["aggregator"]
    if aggregator.use_steps:
        assign(aggregator, steps=names["step"] + 1, num_samples=None)
        return
    seen = names["batch_end"]
    assign(aggregator, num_samples=seen)
    for part in aggregator.results or ():
        if hasattr(part, "num_samples"):  # predictions of one output
            assign(part, num_samples=seen, results=part.results[:seen])
