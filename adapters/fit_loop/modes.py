"""The kinds of loops of a Keras model, and what goes into a step of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Mode(NamedTuple):
    """The names Keras gives to one kind of loop."""

    name: str
    step: str
    make: str
    function: str
    stop: str


class StepFeeds(NamedTuple):
    """Which of a run's feeds go into the step itself.

    Attributes:
      rate: `(learning-rate variable, index of the feed)`, or None: the variable has
        that value for this step.
      tensors: `{key of a step tensor: index of the feed}`: whatever the step makes
        of the tensor, it makes of the fed value.
    """

    rate: tuple[Any, int] | None = None
    tensors: Mapping[str, int] = {}


NO_FEEDS = StepFeeds()
TRAIN = Mode(
    "train", "train_step", "make_train_function", "train_function", "stop_training"
)
# Keras 2 has no flag that ends these two.
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
