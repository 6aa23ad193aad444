"""What a model function returns, and the specs of all towers as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge import errors

# Modes as in `tf.estimator.ModeKeys`.
TRAIN = "train"
EVAL = "eval"
PREDICT = "infer"


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
      training_hooks: the hooks that a step needs, such as the one of
        a `SyncReplicasOptimizer`.
      scaffold: a `tf.compat.v1.train.Scaffold`, or None.
    """

    loss: Any
    metrics: Mapping[str, Any] = MappingProxyType({})
    predictions: Any = None
    train_op: Any = None
    training_hooks: Sequence[Any] = ()
    scaffold: Any = None


def mean(values: Sequence[Any]) -> Any:
    """Return the mean over towers of equal size; of one tower its value."""
    return values[0] if len(values) == 1 else tf.add_n(list(values)) / len(values)


def weighted_mean(losses: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """Return the mean over towers of different sizes."""
    total = tf.add_n(list(sizes))
    parts = []
    for loss, size in zip(losses, sizes, strict=True):
        share = tf.cast(size, loss.dtype) / tf.cast(total, loss.dtype)
        # The mean over no example is NaN, and NaN times 0 is NaN.
        parts.append(tf.where(size > 0, loss * share, tf.zeros_like(loss)))
    return tf.add_n(parts)


def merged_predictions(towers: Sequence[Any]) -> Any:
    """Join the predictions `[N / num_towers, ...]` of all towers to `[N, ...]`.

    A scalar belongs to no example, so the first tower's scalar is taken.
    """

    def merged(*parts: Any) -> Any:
        is_scalar = tf.convert_to_tensor(parts[0]).shape.rank == 0
        return parts[0] if is_scalar else tf.concat(parts, axis=0)

    return None if towers[0] is None else tf.nest.map_structure(merged, *towers)


def merged_export_outputs(towers: Sequence[Any]) -> Any:
    """Return the export outputs of the whole batch."""
    if towers[0] is None:
        return None
    return {
        name: _export_output(name, [outputs[name] for outputs in towers])
        for name in towers[0]
    }


def _export_output(name: str, towers: Sequence[Any]) -> Any:
    """Return one export output with the predictions of all towers."""
    kind = type(towers[0])
    # In every Estimator version, an export output has its arguments as attributes.
    for fields in (("outputs",), ("scores", "classes"), ("value",)):
        if all(hasattr(towers[0], field) for field in fields):
            values = {
                field: merged_predictions([getattr(tower, field) for tower in towers])
                for field in fields
            }
            return kind(**values)
    raise errors.InvalidArgumentError(
        f"The export output `{name}` is a `{kind.__name__}`; expected a "
        "PredictOutput, ClassificationOutput or RegressionOutput, which can be "
        "merged over towers. Export with one tower."
    )


def merged_metrics(
    towers: Sequence[Any], variables: Sequence[Sequence[Any]], sizes: Sequence[Any]
) -> Any:
    """Return `eval_metric_ops` over the examples of all towers.

    Metrics, `(value, update_op)` or of Keras 2, keep sums in local variables. After
    each update the first tower's variables get the sums of all towers, and the other
    towers start from zero again. A tower without examples is left out, because a mean
    over nothing is NaN.
    """
    if not towers[0]:
        return towers[0]
    _check_variables_of_metrics(variables)
    pairs = [
        {name: _value_and_update(metric) for name, metric in metrics.items()}
        for metrics in towers
    ]
    updates = [update for metrics in pairs for _, update in metrics.values()]
    with tf.control_dependencies(updates):
        moves = _moves_to_first_tower(variables, sizes)
    with tf.control_dependencies([*moves, *updates]):
        done = tf.no_op(name="merged_metrics")
    return {name: (value, done) for name, (value, _) in pairs[0].items()}


def _check_variables_of_metrics(variables: Sequence[Sequence[Any]]) -> None:
    """Refuse towers whose metrics share variables, or have others."""
    shapes = [[v.shape.as_list() for v in of_tower] for of_tower in variables]
    if any(shapes_of_tower != shapes[0] for shapes_of_tower in shapes):
        raise errors.InvalidArgumentError(
            f"The towers' metrics have variables of the shapes {shapes}; expected "
            "separate variables for each tower, as the metrics of "
            "`tf.compat.v1.metrics` and of Keras 2 make them (`get_variable` gives "
            "all towers the same one)."
        )


def _moves_to_first_tower(
    variables: Sequence[Sequence[Any]], sizes: Sequence[Any]
) -> list[Any]:
    """Return ops that give the first tower's variables the sums, others zero."""
    values = [[v.read_value() for v in of_tower] for of_tower in variables]
    counted = values[:1] + [
        [tf.where(size > 0, value, tf.zeros_like(value)) for value in of_tower]
        for of_tower, size in zip(values[1:], sizes[1:], strict=True)
    ]
    sums = [tf.add_n(list(same)) for same in zip(*counted, strict=True)]
    with tf.control_dependencies(sums):
        return [
            variable.assign(total if tower == 0 else tf.zeros_like(total))
            for tower, of_tower in enumerate(variables)
            for variable, total in zip(of_tower, sums, strict=True)
        ]


def _value_and_update(metric: Any) -> tuple[Any, Any]:
    if isinstance(metric, tuple):
        return metric
    return metric.result(), tf.group(*metric.updates)
