"""The model that a session's callbacks are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hookbridge.adapters.guests.kinds import Flavour
from hookbridge.adapters.live_model.clone import Clone
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.model import LiveModel
from hookbridge.adapters.live_model.optimizer import live_optimizer
from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.adapters.session_graph.variables import model_variables


class ModelOptions(Protocol):
    """What the model has to know of the options of `as_hooks`."""

    @property
    def flavours(self) -> frozenset[Flavour]:
        """The Keras versions that the callbacks were written for."""

    @property
    def backups(self) -> frozenset[str]:
        """The weights files that have to hold the whole session."""

    def keras_model(self, graph: Any) -> Any:
        """The Keras model of a graph, or None."""


def build_model(
    options: ModelOptions,
    graph: Any,
    *,
    session: Callable[[], Any],
    step: Callable[[], int],
    metrics: list[str],
    rates: list[LearningRate],
    evaluate: Callable[[], Mapping[str, float]] | None,
) -> LiveModel:
    """Builds the live model of a run.

    Args:
      options: of `as_hooks`.
      graph: the graph of the session, not finalized.
      session: returns the raw session, or None before there is one.
      step: returns the global step.
      metrics: names of the entries of `logs`.
      rates: the learning rates of the graph.
      evaluate: validates and returns `{metric: value}`, or None.
    """
    source = options.keras_model(graph)
    if source is None:
        weights = LiveWeights(*model_variables(graph), session)
        clone = None
    else:
        weights = LiveWeights(
            source.trainable_weights,
            source.non_trainable_weights,
            session,
            source.weights,
        )
        clone = Clone(source, weights)
    return LiveModel(
        weights=weights,
        optimizer=live_optimizer(LiveRates(rates, session), step, options.flavours),
        counters=LiveCounters(step, options.flavours),
        clone=clone,
        metrics=metrics,
        graph=graph,
        evaluate=evaluate,
        backups=options.backups,
    )
