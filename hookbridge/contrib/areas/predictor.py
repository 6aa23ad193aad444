"""`tf.contrib.predictor`: a function over a session that is kept open."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class Predictor:
    """Calls the tensors of a graph by the names of a signature.

    Args:
      graph: the graph.
      session: a session over it.
      feed_tensors: `{name: tensor}` of the inputs.
      fetch_tensors: `{name: tensor}` of the outputs.
    """

    def __init__(
        self,
        graph: Any,
        session: Any,
        feed_tensors: dict[str, Any],
        fetch_tensors: dict[str, Any],
    ) -> None:
        self.graph, self.session = graph, session
        self.feed_tensors, self.fetch_tensors = feed_tensors, fetch_tensors

    def __call__(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        """The outputs for some inputs; an input that is left out is not fed.

        Raises:
          ValueError: a name is no input.
        """
        unknown = set(input_dict) - set(self.feed_tensors)
        if unknown:
            raise ValueError(
                f"Got unexpected keys in input_dict: {unknown}; expected: "
                f"{set(self.feed_tensors)}"
            )
        feeds = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        found: dict[str, Any] = self.session.run(self.fetch_tensors, feeds)
        return found


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
    """`tf.contrib.predictor.from_saved_model`.

    Raises:
      ValueError: more than one way to name the tensors is given, or the model has no
        such signature.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must be given together.")
    given = (signature_def_key, signature_def, input_names)
    if sum(one is not None for one in given) > 1:
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
        input_names = {k: v.name for k, v in signature_def.inputs.items()}
        output_names = {k: v.name for k, v in signature_def.outputs.items()}
    return _predictor(graph, session, input_names, output_names)


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Any,
    output_key: str | None = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """`tf.contrib.predictor.from_estimator`, with the newest checkpoint.

    Raises:
      KeyError: the Estimator exports no such output.
    """
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
    inputs = {k: v.name for k, v in signature.inputs.items()}
    outputs = {k: v.name for k, v in signature.outputs.items()}
    return _predictor(graph, session, inputs, outputs)


def _predictor(graph: Any, session: Any, inputs: Any, outputs: Any) -> Predictor:
    feeds = {k: graph.get_tensor_by_name(name) for k, name in inputs.items()}
    fetches = {k: graph.get_tensor_by_name(name) for k, name in outputs.items()}
    return Predictor(graph, session, feeds, fetches)
