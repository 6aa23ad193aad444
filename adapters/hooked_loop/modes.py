"""The three loops of a Keras model: Keras's names for their parts, and which runs."""

from __future__ import annotations

import sys
import traceback
from typing import NamedTuple

from hookbridge.ground.protocols import KerasModel

MODEL_LOOPS = ("fit", "evaluate", "predict")
# Methods that start a loop, or a single step with the function of a loop: the name of
# that loop.
STARTERS = {
    "fit": "train",
    "evaluate": "test",
    "predict": "predict",
    "train_on_batch": "train",
    "test_on_batch": "test",
    "predict_on_batch": "predict",
}


class Mode(NamedTuple):
    """One kind of loop: its name, and names of the model's methods and attributes."""

    name: str
    method: str  # what computes a step
    make: str
    function: str
    stop: str  # the flag that ends the loop; Keras 2 has it for training only


def _mode(name: str, stop: str) -> Mode:
    return Mode(name, f"{name}_step", f"make_{name}_function", f"{name}_function", stop)


TRAIN = _mode("train", "stop_training")
TEST = _mode("test", "stop_evaluating")
PREDICT = _mode("predict", "stop_predicting")
MODES = (TRAIN, TEST, PREDICT)


def is_running(model: KerasModel, thread: int) -> bool:
    """Return whether a thread, by its identifier, runs inside a loop of `model`."""
    # The stack frames are searched, since a loop that ends by an exception tells
    # nobody. Only methods count: a user's function may be called `fit` too.
    frame = sys._current_frames().get(thread)
    try:
        return frame is not None and any(
            caller.f_code.co_name in MODEL_LOOPS
            and caller.f_locals.get("self") is model
            for caller, _ in traceback.walk_stack(frame)
        )
    finally:
        # It is this call itself, if it is the thread's own: the circle would keep all
        # that the loop has, its iterators too, until the next collection.
        del frame
