"""What goes into a tower loop, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.arguments import string_mapping

TRAIN = "train"
EVAL = "eval"

# Called as model_fn(features, labels, mode).
ModelFn = Callable[[Any, Any, str], "TowerSpec"]


@dataclass(frozen=True)
class TowerSpec:
    """The outputs of a model function for one tower's examples.

    Attributes:
      loss: float tensor `[]`, the mean over the tower's examples (plus
        regularisation). Since towers have equal sizes, the mean over towers is the
        loss of the whole batch.
      metrics: `{name: tensor []}`, each a mean over the tower's examples.
      predictions: tensor or structure of tensors `[N, ...]`; None if there are none.
        N is the number of the tower's examples.
    """

    loss: Any
    metrics: Mapping[str, Any] = field(default_factory=dict)
    predictions: Any = None


def as_pair(element: Any) -> tuple[Any, Any]:
    """An element of the input as `(features, labels)`."""
    if not isinstance(element, (tuple, list)) or len(element) != 2:
        raise errors.InvalidArgumentError(
            f"The input function gives elements of type `{type(element).__name__}`; "
            "expected `(features, labels)` pairs."
        )
    return element[0], element[1]


def call_model_fn(
    model_fn: ModelFn, features: Any, labels: Any, mode: str
) -> TowerSpec:
    """Calls `model_fn` and checks its result."""
    spec = model_fn(features, labels, mode)
    if not isinstance(spec, TowerSpec):
        raise errors.InvalidArgumentError(
            f"`model_fn` returned {spec!r}; expected "
            "`hookbridge.loops.TowerSpec(loss=..., metrics={...})`."
        )
    metrics = string_mapping("metrics", spec.metrics)
    for name, tensor in {"loss": spec.loss, **metrics}.items():
        if getattr(getattr(tensor, "shape", None), "rank", None) != 0:
            raise errors.InvalidArgumentError(
                f"`model_fn` returned `{name}` = {tensor!r}; expected a scalar "
                "tensor, the mean over the examples. Use `tf.reduce_mean`."
            )
    return spec


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training run.

    Attributes:
      global_step: the global step at the end.
      variables: `{variable name: array}` at the end, after every guest's last event.
        Empty in a cluster if the job was over before this task had a session, or if
        a stop ended this task in the middle of a step.
    """

    global_step: int
    variables: Mapping[str, Any]


class FinalValuesHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Keeps the variables and the global step at a clean end of the session.

    Put it last: a callback may restore the best weights at its end.
    """

    steps = 0

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.global_step: int | None = None

    def begin(self) -> None:
        self._tensors = {v.op.name: v for v in tf.compat.v1.global_variables()}
        self._step = tf.compat.v1.train.get_global_step()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.steps += 1

    def end(self, session: Any) -> None:
        self.variables, step = session.run((self._tensors, self._step))
        self.global_step = int(step)
