"""`self.params` of a callback, as TensorFlow filled it until 2.1."""

from __future__ import annotations

import functools
from typing import Any

from hookbridge.ground.protocols import KerasModel
from hookbridge.old_programs.run.restored.fit_calls import change_fit


def restore() -> None:
    """Let `fit` of Keras 2 tell its callbacks metrics, samples and the batch size.

    The method stays changed until the process ends.
    """
    change_fit(_with_params, "")


def _with_params(
    model: KerasModel, arguments: dict[str, Any], callbacks: list[Any]
) -> list[Any]:
    """Return the callbacks with one more, which comes first."""
    return [_callback_class()(model, arguments), *callbacks]


@functools.cache
def _callback_class() -> Any:
    """Return the class, which is made once TensorFlow is imported."""
    import tensorflow as tf

    class TellsParams(tf.keras.callbacks.Callback):  # type: ignore[misc]
        """Adds what the others find in the dictionary that all of them get."""

        _supports_tf_logs = True

        def __init__(self, trained: Any, arguments: dict[str, Any]) -> None:
            super().__init__()
            self._trained = trained
            self._arguments = arguments

        def set_params(self, params: dict[str, Any]) -> None:
            """Fill the dictionary before the callbacks that follow get it."""
            super().set_params(params)
            params.update(_params(self._trained, self._arguments))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            """Name the metrics that the model has made in its first batch."""
            if batch == 0:
                self.params.update(_params(self._trained, self._arguments))

    return TellsParams


def _params(model: KerasModel, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what TensorFlow 2.0 told.

    Args:
      model: the model that is trained.
      arguments: those of `fit`, by their names. Arrays have the samples first.
    """
    share = arguments.get("validation_split") or 0.0
    has_validation = bool(share) or arguments.get("validation_data") is not None
    names = list(model.metrics_names) or _names_to_be(model)
    inputs: Any = arguments.get("x")
    while isinstance(inputs, list | tuple | dict) and inputs:
        inputs = next(iter(inputs.values() if isinstance(inputs, dict) else inputs))
    is_array = hasattr(inputs, "shape") and hasattr(inputs, "__len__")
    samples = int(len(inputs) * (1.0 - share)) if is_array else None
    return {
        "batch_size": arguments.get("batch_size") or (32 if is_array else None),
        "do_validation": has_validation,
        "metrics": names + [f"val_{name}" for name in names if has_validation],
        "samples": samples,
    }


def _names_to_be(model: Any) -> list[str]:
    """Name the metrics of a model that has not seen a batch."""
    metrics = (model.get_compile_config() or {}).get("metrics") or []
    outputs = list(getattr(model, "output_names", None) or [""])
    several = len(outputs) > 1
    names = ["loss", *(f"{output}_loss" for output in outputs if several)]
    for output in outputs:
        of_output = metrics.get(output, []) if isinstance(metrics, dict) else metrics
        for metric in of_output if isinstance(of_output, list | tuple) else [of_output]:
            names.append(f"{output}_{_name(metric)}" if several else _name(metric))
    return names


def _name(metric: object) -> str:
    """Name a metric by what `get_compile_config` says of it."""
    config = metric.get("config") if isinstance(metric, dict) else metric
    return str(config.get("name")) if isinstance(config, dict) else str(config)
