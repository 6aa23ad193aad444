"""`tf.contrib.predictor`: a function over a session that is kept open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge.ground.protocols import Graph, Session

v1: Any = tf.compat.v1


class Predictor:
    """Calls the tensors of a graph by the names of a signature."""

    def __init__(self, graph: Graph, session: Session, signature: Any) -> None:
        self.graph: Any = graph
        self.session: Any = session
        self.feed_tensors: dict[str, Any] = _tensors(graph, signature.inputs)
        self.fetch_tensors: dict[str, Any] = _tensors(graph, signature.outputs)

    def __call__(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs for some inputs; an input that is left out is not fed."""
        feeds = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        outputs: dict[str, Any] = self.session.run(self.fetch_tensors, feeds)
        return outputs


def _tensors(graph: Graph, infos: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors of one side of a signature, by their names there."""
    return {key: graph.get_tensor_by_name(info.name) for key, info in infos.items()}


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    *,
    tags: str | None = None,
    graph: Graph | None = None,
    config: object = None,
) -> Predictor:
    """`tf.contrib.predictor.from_saved_model`."""
    with (graph or tf.Graph()).as_default() as own_graph:
        session = v1.Session(config=config)
        wanted = [tag.strip() for tag in (tags or "serve").split(",")]
        model = v1.saved_model.load(session, wanted, export_dir)
    key = signature_def_key or "serving_default"
    if key not in model.signature_def:
        raise ValueError(
            f'Got signature_def_key "{key}". Available signatures are '
            f"{list(model.signature_def)}."
        )
    return Predictor(own_graph, session, model.signature_def[key])


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Any,
    output_key: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """`tf.contrib.predictor.from_estimator`, with the newest checkpoint."""
    with (graph or tf.Graph()).as_default() as own_graph:
        receiver = serving_input_receiver_fn()
        spec = estimator.model_fn(receiver.features, None, "infer", estimator.config)
        key = output_key or "serving_default"
        if key not in spec.export_outputs:
            raise KeyError(f"output_key must be one of {list(spec.export_outputs)}")
        signature = spec.export_outputs[key].as_signature_def(receiver.receiver_tensors)
        session = v1.train.MonitoredSession(
            v1.train.ChiefSessionCreator(
                config=config, checkpoint_dir=estimator.model_dir
            )
        )
    return Predictor(own_graph, session, signature)
