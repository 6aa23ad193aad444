"""`tf.contrib.predictor`: a function over a session that is kept open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf


class Predictor:
    """Calls the tensors of a graph by the names of a signature."""

    def __init__(
        self,
        graph: Any,
        session: Any,
        feed_names: Mapping[str, str],
        fetch_names: Mapping[str, str],
    ) -> None:
        self.graph, self.session = graph, session
        tensor = graph.get_tensor_by_name
        self.feed_tensors = {k: tensor(name) for k, name in feed_names.items()}
        self.fetch_tensors = {k: tensor(name) for k, name in fetch_names.items()}

    def __call__(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        """The outputs for some inputs; an input that is left out is not fed."""
        unknown = set(input_dict) - set(self.feed_tensors)
        if unknown:
            raise ValueError(
                f"Got unexpected keys in input_dict: {unknown}; expected: "
                f"{set(self.feed_tensors)}"
            )
        feeds = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        outputs: dict[str, Any] = self.session.run(self.fetch_tensors, feeds)
        return outputs


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Any = None,
    output_names: Any = None,
    tags: str | None = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """`tf.contrib.predictor.from_saved_model`."""
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must be given together.")
    options = (signature_def_key, signature_def, input_names)
    if sum(one is not None for one in options) > 1:
        raise ValueError(
            "Give at most one of signature_def_key, signature_def, and input_names "
            "with output_names."
        )
    v1, graph = tf.compat.v1, graph or tf.Graph()
    with graph.as_default():
        session = v1.Session(config=config)
        wanted = [tag.strip() for tag in (tags or "serve").split(",")]
        model = v1.saved_model.load(session, wanted, export_dir)
    if input_names is None:
        if signature_def is None:
            key = signature_def_key or "serving_default"
            if key not in model.signature_def:
                raise ValueError(
                    f'Got signature_def_key "{key}". Available signatures are '
                    f"{list(model.signature_def)}."
                )
            signature_def = model.signature_def[key]
        input_names, output_names = _names(signature_def)
    return Predictor(graph, session, input_names, output_names)


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Any,
    output_key: str | None = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """`tf.contrib.predictor.from_estimator`, with the newest checkpoint."""
    v1, graph = tf.compat.v1, graph or tf.Graph()
    with graph.as_default():
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
    return Predictor(graph, session, *_names(signature))


def _names(signature: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The names of the tensors of a signature's inputs and outputs."""
    inputs, outputs = signature.inputs.items(), signature.outputs.items()
    return {k: v.name for k, v in inputs}, {k: v.name for k, v in outputs}
