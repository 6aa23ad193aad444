"""The model and the parameters that a session's callbacks are given."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hookbridge.adapters.live_model import backup as session_backup
from hookbridge.adapters.live_model import clone as shadow_model
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.model import LiveModel
from hookbridge.adapters.live_model.optimizer import LiveOptimizer
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph import variables as session_variables
from hookbridge.adapters.session_graph.learning_rate import LearningRate

if TYPE_CHECKING:
    from hookbridge.adapters.session_loop.group import CallbackGroup
    from hookbridge.adapters.session_loop.run import SessionRun


def params_for(group: CallbackGroup, callback: Any) -> dict[str, Any]:
    """`callback.params`, a dict of its own for each callback."""
    params = {
        "verbose": 1,
        "epochs": group.epochs,
        "steps": group.steps_per_epoch,
        **group.params,
    }
    if params["epochs"] is None and type(callback).__name__ == "ProgbarLogger":
        # It compares the number; one epoch is what makes it print no number.
        params["epochs"] = 1
    if type(callback).__name__ == "BaseLogger":
        # It averages what Keras has averaged itself since TF 2, and fails without
        # the list of what to average.
        params.setdefault("metrics", [])
    return params


def make_model(
    run: SessionRun,
    metrics: list[str],
    rates: list[LearningRate],
    evaluate: Callable[[], Mapping[str, float]] | None,
) -> LiveModel:
    """Builds the live model of a run.

    Args:
      run: the run; its graph is not finalized.
      metrics: names of the entries of `logs`.
      rates: the learning rates of the graph.
      evaluate: validates and returns `{metric: value}`, or None.
    """
    shadow = None
    group = run.group
    source = group.keras_model(run.graph)

    def session() -> Any:
        return run.session

    def step() -> int:
        return run.step

    if source is not None:
        shadow = shadow_model.ShadowModel(source)
        live = LiveWeights(
            list(source.trainable_weights),
            list(source.non_trainable_weights),
            session,
            list(source.weights),
        )
        if shadow:
            for theirs, ours in zip(source.weights, shadow.model.weights, strict=True):
                live.mirrors.adopt(theirs, ours)
    else:
        live = LiveWeights(*session_variables.model_variables(run.graph), session)
    poses_as = _optimizer_class() if "keras3" in group.flavours else None
    model = LiveModel(
        weights=live,
        optimizer=LiveOptimizer(
            rates, session, step, poses_as if len(rates) == 1 else None
        ),
        counters=LiveCounters(step, group.flavours),
        shadow=shadow,
        metrics=metrics,
        graph=run.graph,
        evaluate=evaluate,
        backups=session_backup.paths(group.callbacks),
    )
    model._live_run = weakref.ref(run)
    return model


def _optimizer_class() -> type:
    import keras

    found: type = keras.optimizers.Optimizer
    return found
