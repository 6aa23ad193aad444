"""What a model function of towers returns where there is no Estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.arguments import shown, string_mapping

TRAIN = "train"
EVAL = "eval"

# Called as model_fn(features, labels, mode).
ModelFn = Callable[[Any, Any, str], "TowerSpec"]


class TowerSpec(NamedTuple):
    """The outputs of a model function for one tower's examples, without an Estimator.

    `hb.replicate_model_fn` takes it in place of an `EstimatorSpec` for training, and a
    model definition file returns it from `tower_fn`.

    Attributes:
      loss: float tensor `[]`, the mean over the tower's examples (plus
        regularisation). Since towers have equal sizes, the mean over towers is the
        loss of the whole batch.
      metrics: `{name: tensor []}`, each a mean over the tower's examples.
      predictions: tensor or structure of tensors `[N, ...]`; None if there are none.
        N is the number of the tower's examples.
      train_op: the operation of a step. None in `tower_fn`: the loop makes it.
    """

    loss: Any
    metrics: Mapping[str, Any] = MappingProxyType({})
    predictions: Any = None
    train_op: Any = None


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
            f"`tower_fn` returned {shown(spec)}; expected "
            "`hookbridge.loops.TowerSpec(loss=..., metrics={...})`."
        )
    metrics = string_mapping("metrics", spec.metrics)
    for name, tensor in {"loss": spec.loss, **metrics}.items():
        if getattr(getattr(tensor, "shape", None), "rank", None) != 0:
            raise errors.InvalidArgumentError(
                f"`tower_fn` returned `{name}` = {shown(tensor)}; expected a scalar "
                "tensor, the mean over the examples. Use `tf.reduce_mean`."
            )
    return spec
