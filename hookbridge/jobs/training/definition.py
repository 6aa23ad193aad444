"""A model definition file: what it defines, checked when it is used."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.live_model.clone import keras_of
from hookbridge.ground.arguments import instance, parameters_of, shown
from hookbridge.jobs.loops.towers.spec import TRAIN
from hookbridge.jobs.training.definition_logs import add_definition_logs
from hookbridge.jobs.training.file_text import MODELS, FileText
from hookbridge.jobs.training.user_file import find_function, find_guests

_INPUTS = ("dataset_fn", "input_fn", "train_input_fn")
# All names that are looked for in a file.
_NAMES = (
    *MODELS,
    *_INPUTS,
    "callbacks",
    "eval_input_fn",
    "eval_metrics_fn",
    "graph_model",
    "guests",
    "hooks",
    "loss",
    "optimizer",
    "params",
    "predict_input_fn",
)


class ModelDefinition:
    """The functions of a user's file.

    The file has `custom_model()`, `loss(labels, predictions)`, `optimizer()` and
    perhaps `eval_metrics_fn()`; or an Estimator's `model_fn(features, labels, mode,
    params, config)`. It gives its data in one of three ways: `dataset_fn(dataset,
    mode[, metadata])` transforms the rows of the files; `input_fn(files, mode,
    batch_size)` may leave out any argument and returns a dataset or a
    `hb.data.Pipeline`; `train_input_fn()`, `eval_input_fn()` and `predict_input_fn()`
    return datasets. It may have `callbacks()`, `hooks()`, `guests` and `params`; the
    first two may take `mode` and `model_dir`. With `graph_model(features, mode)`, the
    network of `custom_model()` in plain TF1, it trains in `session` without an
    Estimator, and without Keras 2.
    """

    def __init__(self, module: ModuleType, model_dir: str = "") -> None:
        self._model_dir = model_dir
        self.path: str = str(module.__file__)
        self.module = module
        if os.path.isfile(self.path):  # a module that a program has made has no text
            FileText(self.path).check_names(_NAMES)
        self.model_fn: Callable[..., Any] | None = None
        self.graph_model: Callable[..., Any] | None = None
        if not hasattr(module, "custom_model") and not hasattr(module, "model_fn"):
            raise errors.InvalidArgumentError(
                f"{self.path} has neither `custom_model` nor `model_fn`; expected "
                "`custom_model()`, `loss(labels, predictions)` and `optimizer()`, or "
                "`model_fn(features, labels, mode)`."
            )
        if hasattr(module, "model_fn"):
            expected = "a function `model_fn(features, labels, mode)`"
            self.model_fn = instance("model_fn", module.model_fn, Callable, expected)
        else:
            self._custom_model = find_function(module, "custom_model")
            self._loss = find_function(module, "loss", "labels", "predictions")
            self._optimizer = find_function(module, "optimizer")
            if hasattr(module, "graph_model"):
                arguments = ("features", "mode")
                self.graph_model = find_function(module, "graph_model", *arguments)
        if not any(hasattr(module, name) for name in _INPUTS):
            raise errors.InvalidArgumentError(
                f"{self.path} says nothing about its data; expected "
                "`dataset_fn(dataset, mode)`, `input_fn(files, mode, batch_size)` or "
                "`train_input_fn()`."
            )

    @property
    def is_keras(self) -> bool:
        """Return whether the file has `custom_model()` and not a `model_fn`."""
        return self.model_fn is None

    @property
    def params(self) -> dict[str, Any] | None:
        """The file's `params`, or None."""
        params = self.optional("params")
        if params is not None and not isinstance(params, Mapping):
            raise self.wrong("params", params, "a dict")
        return None if params is None else dict(params)

    def optional(self, name: str) -> Any:
        """Return an object of the file, or None if the file has none of that name."""
        return getattr(self.module, name, None)

    def custom_model(self) -> Any:
        """Return a new Keras model."""
        model = self._custom_model()
        if keras_of(model) is None:
            raise self.wrong("custom_model", model, "a Keras model")
        return model

    def optimizer(self, **arguments: Any) -> Any:
        """Return a new optimizer, of Keras or of `tf.compat.v1.train`."""
        optimizer = self._optimizer(**arguments)
        if not callable(getattr(optimizer, "apply_gradients", None)):
            raise self.wrong("optimizer", optimizer, "an optimizer")
        return optimizer

    def loss(self, labels: object, predictions: object) -> Any:
        """Return the mean loss of a batch, a scalar float32 tensor."""
        loss = self._loss(labels, predictions)
        try:
            return tf.reduce_mean(tf.cast(loss, tf.float32))
        except (TypeError, ValueError) as e:
            raise self.wrong("loss", loss, "a tensor, the loss") from e

    def metrics(self) -> dict[str, Any]:
        """`{name: function(labels, predictions) or Keras metric}`; may be empty."""
        if self.optional("eval_metrics_fn") is None:
            return {}
        metrics = find_function(self.module, "eval_metrics_fn")()
        wanted = "a dict `{name: function(labels, predictions)}`, or of Keras metrics"
        if not isinstance(metrics, Mapping):
            raise self.wrong("eval_metrics_fn", metrics, wanted)
        for name, metric in metrics.items():
            works = callable(metric) or hasattr(metric, "update_state")
            if not (isinstance(name, str) and works):
                raise self.wrong("eval_metrics_fn", metrics, wanted)
        return dict(metrics)

    def guests(self, mode: str) -> list[Any]:
        """Return the hooks and callbacks for one mode.

        A function makes new ones each time.

        `callbacks()` and `guests` are for all modes; `hooks()` is for training, unless
        it takes an argument `mode`.
        """
        guests: list[Any] = []
        for name in ("callbacks", "hooks", "guests"):
            item = self.optional(name)
            for_all = name != "hooks" or (
                callable(item) and "mode" in parameters_of(item)
            )
            if not hasattr(self.module, name) or not (for_all or mode == TRAIN):
                continue
            items = find_guests(self.module, name, mode=mode, model_dir=self._model_dir)
            try:
                items = kinds.flatten(items)
            except errors.NotAGuestError as e:
                raise errors.NotAGuestError(f"{self.where(name)}: {e}") from e
            if name == "callbacks":
                for callback in filter(kinds.is_callback, items):
                    add_definition_logs(callback)
            guests += items
        return guests

    def where(self, name: str) -> str:
        """`FILE, line N: NAME`, for messages."""
        value = getattr(self.module, name, None)
        code = getattr(inspect.unwrap(value), "__code__", None) if value else None
        line = f", line {code.co_firstlineno}" if code is not None else ""
        return f"{self.path}{line}: `{name}`"

    def wrong(self, name: str, value: object, expected: str) -> Exception:
        """Return the error for a function, or a value, that is not as expected."""
        returned = "returned" if callable(getattr(self.module, name, None)) else "is"
        return errors.InvalidArgumentError(
            f"{self.where(name)} {returned} {shown(value)} of type "
            f"`{type(value).__name__}`; expected {expected}."
        )
