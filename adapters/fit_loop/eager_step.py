"""What hooks can fetch from a step that runs eagerly, so that nothing is traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.hooked_loop.modes import PREDICT, Mode
from hookbridge.adapters.keras_model.structure import layers_of, output_names
from hookbridge.adapters.live_session.step_names import OUTPUTS, StepNames
from hookbridge.ground.protocols import KerasModel

# The prefix of the names of outputs that the model does not name.
OUTPUT = "output_"


def fill_names(model: KerasModel, mode: Mode, names: StepNames) -> None:
    """Fill `names` with the loss, the metrics, the outputs and all layers' outputs."""
    # A layer's output is `<layer>/output:0`; with an activation, the same tensor is
    # also `<layer>/<Activation>:0`.
    names.is_eager = True
    any_shape = tf.TensorShape(None)
    names.add_short("loss", tf.float32, any_shape)
    # Keras 3 keeps the metrics of `compile` in one object; no step returns its name.
    single = [m.name for m in model.metrics if type(m).__name__ != "CompileMetrics"]
    metrics = [*single, *_compiled_metrics(model)]
    for metric in metrics:
        names.add_short(metric, tf.float32, any_shape)
    if mode is PREDICT:
        outputs = output_names(model) or [f"{OUTPUT}1"]
        names.loop_keys.update({name: f"{OUTPUTS}{name}" for name in outputs})
        dtype = getattr(model, "compute_dtype", None) or "float32"
        for key in names.loop_keys.values():
            names.add_short(key, tf.as_dtype(dtype), any_shape)
    else:
        names.loop_keys.update({name: name for name in ("loss", *metrics)})
    for layer in layers_of(model):
        dtype = tf.as_dtype(getattr(layer, "compute_dtype", None) or "float32")
        for key in output_keys(layer):
            names.add_short(key, dtype, any_shape)


def names_for(model: KerasModel) -> StepNames:
    """Return an empty catalogue of a model's step."""
    layers = (str(layer.name) for layer in layers_of(model))
    return StepNames(str(getattr(model, "name", "model")), layers)


def output_keys(layer: Any) -> list[str]:
    keys = [f"{layer.name}/output"]
    activation = getattr(getattr(layer, "activation", None), "__name__", "linear")
    if activation != "linear":
        camel = "".join(part.capitalize() for part in activation.split("_"))
        keys.append(f"{layer.name}/{camel}")
    return keys


def _compiled_metrics(model: KerasModel) -> list[str]:
    """Return the names of metrics that Keras has not made yet."""
    config: dict[str, Any] = getattr(model, "get_compile_config", dict)() or {}
    outputs = output_names(model)
    if len(outputs) < 2:
        arguments = (config.get("metrics"), config.get("weighted_metrics"))
        return [name for metrics in arguments for name in _metric_names(metrics)]
    names = [f"{output}_loss" for output in outputs]
    for key in ("metrics", "weighted_metrics"):
        for output, metrics in _by_output(config.get(key) or (), outputs):
            names += [f"{output}_{name}" for name in _metric_names(metrics)]
    return names


def _by_output(metrics: Any, outputs: list[str]) -> list[tuple[str, Any]]:
    """Return each output of a model with its metrics, as `compile` got them."""
    if isinstance(metrics, Mapping):
        return list(metrics.items())
    if len(metrics) == len(outputs):
        return list(zip(outputs, metrics, strict=True))
    return [(output, metrics) for output in outputs]  # Keras 2 gives every one all


def _metric_names(metrics: object) -> list[str]:
    """Return names of metrics that `compile` got: strings, functions, objects."""
    if isinstance(metrics, str):
        return [metrics]
    if isinstance(metrics, Mapping) and "class_name" in metrics:
        config = metrics.get("config")
        name = config.get("name") if isinstance(config, Mapping) else config
        return _metric_names(name)
    if isinstance(metrics, Mapping):
        metrics = list(metrics.values())
    if isinstance(metrics, (list, tuple)):
        return [name for metric in metrics for name in _metric_names(metric)]
    name = getattr(metrics, "name", None) or getattr(metrics, "__name__", None)
    return [name] if isinstance(name, str) else []
