"""Exports the trained model as a SavedModel."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_model.clone import keras_of
from hookbridge.adapters.parameter_server.ps_refusals import uses_parameter_servers
from hookbridge.adapters.session_graph import saved
from hookbridge.ground import arguments
from hookbridge.ground.protocols import KerasModel, Logs
from hookbridge.jobs.callbacks.model_uploader import files_below, send
from hookbridge.jobs.callbacks.ready_made import OfSavedModel


class SavedModelExporter(OfSavedModel):
    """Exports the model at the end of the training, for serving.

    A Keras model is exported with its own inputs; it may be the model of a `fit`, or
    the model that a session got with `as_hooks(model=...)`. A bare `model_fn` needs a
    serving input too. The callback works once, in `on_train_end`, on the thread of the
    loop, which waits for it. Its role is `"chief"`.

    Args:
      path: the folder; an older model there is replaced when the new one is complete.
        None takes `params["saved_model_path"]`.
      model_fn: an Estimator's `model_fn`, if there is no Keras model. It is called
        once in each export, with a new graph, on the thread of the loop.
      serving_input_fn: returns a `ServingInputReceiver`; needed with `model_fn`. It is
        called once before it, on the same thread and graph.
      model_params: the `params` of `model_fn`.

    Raises:
      errors.InvalidArgumentError: only one of `model_fn` and `serving_input_fn` is
        given, or one is not a function, or `on_train_begin` finds neither `path` nor
        the entry of `params`.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        model_fn: Callable[..., Any] | None = None,
        serving_input_fn: Callable[[], Any] | None = None,
        model_params: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(path)
        if (model_fn is None) != (serving_input_fn is None):
            raise errors.InvalidArgumentError(
                "Received only one of `model_fn` and `serving_input_fn`; expected both "
                "for an Estimator's model, or neither for a Keras model."
            )
        if model_fn is not None:
            arguments.instance("model_fn", model_fn, Callable, "a function")
            arguments.with_arguments("serving_input_fn", serving_input_fn)
        self._model_fn = model_fn
        self._serving_input_fn = serving_input_fn
        self._model_params = arguments.string_mapping("model_params", model_params)

    @property
    def saves_whole_model(self) -> bool:
        return self._model_fn is None

    def written_folders(self) -> list[str]:
        return [] if self._path is None else [self._path]

    def on_train_end(self, logs: Logs = None) -> None:
        with _replacing(self.folder()) as new:
            if self._model_fn is None:
                _keras_model(self.model, new)
            else:
                _model_function(
                    self._model_fn,
                    self._serving_input_fn,
                    self._model_params,
                    _values_of(self.model),
                    new,
                )


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[str]:
    """Yield a new folder; it replaces `path` if the block ends without an error."""
    new = f"{path}.new"
    if tf.io.gfile.exists(new):
        tf.io.gfile.rmtree(new)
    parent = path.rpartition("/")[0]
    if parent:
        tf.io.gfile.makedirs(parent)
    yield new
    if tf.io.gfile.exists(path):
        tf.io.gfile.rmtree(path)
    tf.io.gfile.rename(new, path)


def _keras_model(model: KerasModel, path: str) -> None:
    """Write the Keras model of `fit` or of a session; its inputs are the signature."""
    if uses_parameter_servers(model):  # a copy has its variables in this process
        keras: Any = keras_of(model)
        copy = keras.models.clone_model(model)
        copy.set_weights(model.get_weights())
        model = copy
    model.export(path)


def _values_of(model: KerasModel) -> dict[saved.SavedArray, Any]:
    """Return the weights of a model, as a checkpoint has them."""
    link = getattr(model, "live_link", None)
    if link is not None:
        entries: dict[saved.SavedArray, Any] = link.weights.entries(link.weights.all)
        return entries
    return {
        _whole(weight.name.partition(":")[0]): value
        for weight, value in zip(model.weights, model.get_weights(), strict=True)
    }


def _whole(name: str) -> saved.SavedArray:
    return saved.SavedArray(name, "", name)


def _model_function(
    model_fn: object,
    serving_input_fn: object,
    params: Mapping[str, Any] | None,
    values: Mapping[saved.SavedArray, Any],
    path: str,
) -> None:
    """Write an Estimator's model with given values of its variables."""
    from hookbridge import estimator as estimator_lib

    with tempfile.TemporaryDirectory(prefix="hookbridge_export_") as folder:
        step = _whole(tf.compat.v1.GraphKeys.GLOBAL_STEP)
        checkpoint = saved.write(f"{folder}/model.ckpt-0", {**values, step: 0})
        estimator = estimator_lib.Estimator(model_fn, folder, params=params)
        exported = estimator.export_saved_model(
            f"{folder}/export", serving_input_fn, checkpoint_path=checkpoint
        )
        for file in files_below(exported.decode()):
            send(exported.decode(), file, path)
