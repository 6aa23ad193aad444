"""The three loops of a Keras model, and Keras's names for their parts."""

from __future__ import annotations

from typing import NamedTuple


class Mode(NamedTuple):
    """One kind of loop.

    Attributes:
      name: `"train"`, `"test"` or `"predict"`.
      step: the model's method for one step.
      make: the model's method that makes the function of a step.
      function: the model's attribute with that function.
      stop: the model's flag that ends the loop; Keras 2 has it for training only.
    """

    name: str
    step: str
    make: str
    function: str
    stop: str


TRAIN = Mode(
    "train", "train_step", "make_train_function", "train_function", "stop_training"
)
TEST = Mode(
    "test", "test_step", "make_test_function", "test_function", "stop_evaluating"
)
PREDICT = Mode(
    "predict",
    "predict_step",
    "make_predict_function",
    "predict_function",
    "stop_predicting",
)
MODES = (TRAIN, TEST, PREDICT)
