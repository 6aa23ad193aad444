"""Exports the trained model as a SavedModel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookbridge import arguments, errors
from hookbridge.callbacks import export
from hookbridge.callbacks.ready_made import ReadyMade, function


class SavedModelExporter(ReadyMade):
    """Exports the model at the end of the training, for serving.

    A Keras model is exported with its own inputs; it may be the model of a `fit`, or
    the model that a session got with `as_hooks(model=...)`. A bare `model_fn` needs a
    serving input too. The callback works once, in `on_train_end`, on the thread of the
    loop, which waits for it. Its role is `"chief"`.

    Args:
      path: the folder; an older model there is replaced when the new one is complete.
        None takes `params["saved_model_path"]`.
      model_fn: an Estimator's `model_fn`, if there is no Keras model. It is called
        once in each export, with a graph of its own, on the thread of the loop.
      serving_input_fn: returns a `ServingInputReceiver`; needed with `model_fn`. It is
        called once before it, on the same thread and graph.
      model_params: the `params` of `model_fn`.

    Raises:
      errors.InvalidArgumentError: only one of `model_fn` and `serving_input_fn` is
        given, or one is no function, or `on_train_end` finds neither `path` nor the
        entry of `params`.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        model_fn: Callable[..., Any] | None = None,
        serving_input_fn: Callable[[], Any] | None = None,
        model_params: dict[str, Any] | None = None,
    ) -> None:
        super().__init__("chief")
        if (model_fn is None) != (serving_input_fn is None):
            raise errors.InvalidArgumentError(
                "Received only one of `model_fn` and `serving_input_fn`; expected both "
                "for an Estimator's model, or neither for a Keras model."
            )
        if model_fn is not None:
            function("model_fn", model_fn)
            function("serving_input_fn", serving_input_fn)
        self._path = None if path is None else arguments.path("path", path)
        self._model_fn = model_fn
        self._serving_input_fn = serving_input_fn
        self._model_params = arguments.string_mapping("model_params", model_params)

    def on_train_end(self, logs: Any = None) -> None:
        path = self.path(self._path, "saved_model_path", "path")
        with export.replacing(path) as new:
            if self._model_fn is None:
                export.keras_model(self.model, new)
            else:
                export.model_function(
                    self._model_fn,
                    self._serving_input_fn,
                    self._model_params,
                    export.values_of(self.model),
                    new,
                )
