"""What Keras's loop returns when a hook stops it before its data ends."""

from __future__ import annotations

import sys
from typing import Any


def end_with_this_batch() -> None:
    """Lets the running loop average over the batches that have run.

    Keras would divide the loss by the number of samples or steps that it expected, and
    return an array with room for all predictions.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "model_iteration":
        frame = frame.f_back
    names = {} if frame is None else frame.f_locals
    aggregator = names.get("aggregator")
    if aggregator is None:
        return
    if aggregator.use_steps:
        aggregator.steps, aggregator.num_samples = names["step"] + 1, None
        return
    seen = aggregator.num_samples = names["batch_end"]
    for part in aggregator.results or ():
        if hasattr(part, "num_samples"):  # predictions of one output
            part.num_samples, part.results = seen, part.results[:seen]
