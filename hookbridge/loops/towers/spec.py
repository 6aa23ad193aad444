"""What a model function of towers returns where there is no Estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

TRAIN = "train"
EVAL = "eval"


class TowerSpec(NamedTuple):
    """The outputs of a model function for one tower's examples, without an Estimator.

    `hb.replicate_model_fn` takes it in place of an `EstimatorSpec` for training.

    Attributes:
      loss: float tensor `[]`, the mean over the tower's examples (plus
        regularisation). Since towers have equal sizes, the mean over towers is the
        loss of the whole batch.
      metrics: `{name: tensor []}`, each a mean over the tower's examples.
      predictions: tensor or structure of tensors `[N, ...]`; None if there are none.
        N is the number of the tower's examples.
      train_op: the operation of a step.
      training_hooks: the hooks that a step needs, such as that of a
        `SyncReplicasOptimizer`.
      scaffold: a `tf.compat.v1.train.Scaffold`, or None.
    """

    loss: Any
    metrics: Mapping[str, Any] = MappingProxyType({})
    predictions: Any = None
    train_op: Any = None
    training_hooks: Sequence[Any] = ()
    scaffold: Any = None
