"""Turns a `model_fn` into one that runs in towers on several devices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.ground.arguments import shown, with_arguments
from hookbridge.jobs.loops.towers.averaged_updates import (
    Update,
    apply_averaged,
    catch_updates,
)
from hookbridge.jobs.loops.towers.build import VARIABLE_DEVICE, build_towers
from hookbridge.jobs.loops.towers.devices import tower_devices
from hookbridge.jobs.loops.towers.inputs import (
    fetch_batches,
    split_any_batch,
    split_batch,
)
from hookbridge.jobs.loops.towers.spec import (
    EVAL,
    TRAIN,
    TowerSpec,
    mean,
    merged_export_outputs,
    merged_metrics,
    merged_predictions,
    weighted_mean,
)

# Values of `loss_reduction`: those of hookbridge, of TF 1 and of Keras.
MEANS = (
    "mean",
    "weighted_mean",
    "weighted_sum_over_batch_size",
    "weighted_sum_by_nonzero_weights",
    "sum_over_batch_size",
)
SUMS = ("sum", "weighted_sum")
Batches = Literal["split", "fetch"]


def replicate_model_fn(
    model_fn: Callable[..., Any],
    devices: Sequence[str] | None = None,
    *,
    num_towers: int | None = None,
    loss_reduction: str = "mean",
    batches: Batches = "split",
) -> Callable[..., Any]:
    """Replicate a `model_fn` over devices, with shared variables on the CPU.

    Each call builds `model_fn` once for each device, on a separate batch. In TRAIN
    the gradients of all towers, dense or `IndexedSlices`, are averaged. Where the
    caller places variables, such as on parameter servers, they stay. The first tower's
    optimizer applies the gradients once; it can be any `tf.compat.v1.train.Optimizer`,
    or a Keras 2 optimizer that can update a v1 graph. In EVAL the metrics, and in EVAL
    and PREDICT the predictions, are of the whole batch. Update ops, summaries,
    hooks and the scaffold are the first tower's. If the model function changes its
    gradients, for example by clipping, it does so in each tower before they are
    averaged; `docs/estimator.md` has more.

    The first tower's operations have no name prefix; operations of tower i are in
    `tower_i/`. The function is modelled on the one in TF 1's `tf.contrib.estimator`,
    but needs no optimizer wrapper.

    Args:
      model_fn: an Estimator's `model_fn(features, labels, mode, params, config)`,
        with any of the last four arguments. If the batch is split, its dense and sparse
        inputs `[N, ...]` arrive as `[N / num_towers, ...]`. It is called once for each
        tower whenever the Estimator builds a graph, on the Estimator's thread.
      devices: the towers' devices, for example `["/device:GPU:0",
        "/device:GPU:1"]`; None takes the GPUs, or else logical CPU devices (give
        the Estimator a session with enough of them:
        `RunConfig(session_config=hb.loops.session_config(devices))`).
      num_towers: number of towers if `devices` is None; by default the number of GPUs,
        or one.
      loss_reduction: `"mean"` if the loss is a mean over examples; `"sum"` if it is
        a sum. For a sum, losses and gradients are added, and the regularisation losses
        of the graph collection count once. The values of
        `tf.compat.v1.losses.Reduction` are accepted too: `SUM` is a sum; the others,
        except `NONE`, are means.
      batches: where the towers' batches in TRAIN come from. `"split"`: one batch of
        the input is split into equal parts. `"fetch"`: the input is fetched once for
        each tower, so a step takes `num_towers` whole batches; fewer batches at the
        end of the data make no step. The features and labels must then come unchanged
        from the dataset. EVAL and PREDICT always split, which loses no example.

    Returns:
      A `model_fn` with the same arguments.

    Raises:
      errors.InvalidArgumentError: a bad argument, or a device that this machine does
        not have; when called, a batch that does not divide or cannot be fetched again
        in TRAIN, or a model function that differs between towers.
      errors.RefusedError: when called, an optimizer of Keras 3, which cannot update
        a v1 graph.
    """
    if isinstance(model_fn, functools.partial):
        # Estimator passes no argument that a `partial` binds by keyword.
        inner = replicate_model_fn(
            model_fn.func,
            devices,
            num_towers=num_towers,
            loss_reduction=loss_reduction,
            batches=batches,
        )
        return functools.partial(inner, *model_fn.args, **model_fn.keywords)
    signature = _signature_of(model_fn)
    _check_choices(loss_reduction, batches)
    replica = _Replicated(
        model_fn,
        tower_devices(num_towers, devices),
        is_mean=loss_reduction in MEANS,
        share=fetch_batches if batches == "fetch" else split_batch,
    )

    @functools.wraps(model_fn)
    def replicated(*args: Any, **kwargs: Any) -> Any:
        return replica(signature.bind(*args, **kwargs).arguments)

    # Estimator looks at the signature to see which arguments a model function takes.
    replicated.__signature__ = signature  # type: ignore[attr-defined]
    return replicated


def _signature_of(model_fn: object) -> inspect.Signature:
    """Return the signature of a model function; refuse what is none."""
    if not callable(model_fn):
        raise errors.InvalidArgumentError(
            f"Received model_fn={shown(model_fn)}; expected a function."
        )
    signature = inspect.signature(model_fn)
    kinds = {p.kind for p in signature.parameters.values()}
    is_open = kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    if "features" not in signature.parameters and not is_open:
        raise errors.InvalidArgumentError(
            f"`model_fn` has the signature `{signature}`; expected an Estimator's "
            "`model_fn(features, labels, mode, params, config)`, with any of the last "
            "four arguments."
        )
    return signature


def _check_choices(loss_reduction: object, batches: object) -> None:
    """Refuse other values of these arguments than `replicate_model_fn` knows."""
    if loss_reduction not in (*MEANS, *SUMS):
        raise errors.InvalidArgumentError(
            f"Received loss_reduction={shown(loss_reduction)}; expected 'mean' or "
            "'sum', or the equivalent in `tf.compat.v1.losses.Reduction`. The loss "
            "of a tower is one number: reduce it in the `model_fn`."
        )
    if batches not in ("split", "fetch"):
        raise errors.InvalidArgumentError(
            f"Received batches={shown(batches)}; expected 'split' or 'fetch'."
        )


def TowerOptimizer(optimizer: object) -> Any:
    """Return the optimizer: `replicate_model_fn` needs no wrapper around it.

    Programs written for `tf.contrib.estimator.replicate_model_fn` wrap their optimizer.

    Args:
      optimizer: an optimizer, or a function without arguments that returns one.

    Raises:
      errors.InvalidArgumentError: it is something else.
    """
    logging.warning("hookbridge: TowerOptimizer returns the optimizer as it is.")
    is_function = callable(optimizer) and not hasattr(optimizer, "apply_gradients")
    result = with_arguments("optimizer", optimizer)() if is_function else optimizer
    if not hasattr(result, "apply_gradients"):
        raise errors.InvalidArgumentError(
            f"Received optimizer={shown(optimizer)}; expected an optimizer, such as "
            "`tf.compat.v1.train.AdamOptimizer()`, or a function that returns one."
        )
    return result


class _Tower(NamedTuple):
    """The results of one call of the model function."""

    spec: Any
    updates: list[Update]
    local_variables: list[Any]


@dataclass(frozen=True)
class _Replicated:
    """One replicated model function; has no state between calls."""

    model_fn: Callable[..., Any]
    devices: tuple[str, ...]
    is_mean: bool
    share: Callable[[Any, int], list[Any]]

    def __call__(self, arguments: dict[str, Any]) -> Any:
        mode = arguments.get("mode", TRAIN)
        towers = len(self.devices)
        sizes: list[Any] | None = None
        with tf.device(VARIABLE_DEVICE):
            batch = tf.nest.map_structure(
                _as_tensor, (arguments["features"], arguments.get("labels"))
            )
            if mode == TRAIN:
                shards = self.share(batch, towers)
            else:
                shards, sizes = split_any_batch(batch, towers)
        built = build_towers(
            functools.partial(self._tower, arguments),
            shards,
            self.devices,
            losses_are_added=not self.is_mean,
        )
        with tf.device(VARIABLE_DEVICE):
            if mode == TRAIN:
                apply_averaged(
                    [tower.updates for tower in built],
                    shards,
                    divisor=float(towers) if self.is_mean else 1.0,
                )
            return built[0].spec._replace(**self._merged(built, sizes))

    def _tower(
        self, arguments: dict[str, Any], shard: Any, variables: list[Any]
    ) -> _Tower:
        """Build one tower on its share of the batch, and catch its updates."""
        of_tower = dict(arguments, features=shard[0])
        if "labels" in arguments:
            of_tower["labels"] = shard[1]
        mode = of_tower.get("mode", TRAIN)
        graph = tf.compat.v1.get_default_graph()
        with catch_updates(graph) as updates:
            spec = self.model_fn(**of_tower)
        is_spec = hasattr(spec, "_replace") and hasattr(spec, "eval_metric_ops")
        if not (is_spec or (isinstance(spec, TowerSpec) and mode == TRAIN)):
            raise errors.InvalidArgumentError(
                f"`model_fn` returned {shown(spec)}; expected an `EstimatorSpec`, or "
                "for training a `hb.loops.TowerSpec`."
            )
        local = {id(variable) for variable in tf.compat.v1.local_variables()}
        return _Tower(spec, updates, [v for v in variables if id(v) in local])

    def _merged(
        self, towers: Sequence[_Tower], sizes: list[Any] | None
    ) -> dict[str, Any]:
        """Return the fields of the spec of all towers together, by their names."""

        def of_each(field: str) -> list[Any]:
            return [getattr(tower.spec, field) for tower in towers]

        changed: dict[str, Any] = {
            "predictions": merged_predictions(of_each("predictions"))
        }
        losses = of_each("loss")
        if losses[0] is not None:
            if not self.is_mean:
                changed["loss"] = tf.add_n(losses)
            elif sizes is None:
                changed["loss"] = mean(losses)
            else:
                changed["loss"] = weighted_mean(losses, sizes)
        if isinstance(towers[0].spec, TowerSpec):
            changed["metrics"] = {
                name: mean([metrics[name] for metrics in of_each("metrics")])
                for name in towers[0].spec.metrics
            }
            return changed
        changed["export_outputs"] = merged_export_outputs(of_each("export_outputs"))
        if towers[0].spec.mode == EVAL:
            changed["eval_metric_ops"] = merged_metrics(
                of_each("eval_metric_ops"),
                [tower.local_variables for tower in towers],
                sizes or [],
            )
        return changed


def _as_tensor(value: object) -> Any:
    """Return an input as a tensor; arrays become constants."""
    is_array = isinstance(value, (np.ndarray, np.generic))
    return tf.convert_to_tensor(value) if is_array else value
