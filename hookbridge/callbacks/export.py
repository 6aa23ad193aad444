"""Writes SavedModels."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.live_model.clone import keras_of
from hookbridge.adapters.parameter_server.refusals import uses_parameter_servers
from hookbridge.adapters.session_graph import saved
from hookbridge.callbacks import upload


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yields a new folder; it replaces `path` if the block ends without an error."""
    path = path.rstrip("/")
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


def keras_model(model: Any, path: str) -> None:
    """Writes the Keras model of `fit` or of a session; its inputs are the signature."""
    if uses_parameter_servers(model):
        model = _here(model)
    model.export(path)


def _here(model: Any) -> Any:
    """A copy whose variables are in this process."""
    keras: Any = keras_of(model)
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    return copy


def values_of(model: Any) -> dict[saved.Entry, Any]:
    """The weights of a model, as a checkpoint has them."""
    link = getattr(model, "live_link", None)
    if link is not None:
        entries: dict[saved.Entry, Any] = link.entries()
        return entries
    return {
        _whole(weight.name.partition(":")[0]): value
        for weight, value in zip(model.weights, model.get_weights(), strict=True)
    }


def _whole(name: str) -> saved.Entry:
    return saved.Entry(name, "", name)


def model_function(
    model_fn: Any,
    serving_input_fn: Any,
    params: Mapping[str, Any] | None,
    values: Mapping[saved.Entry, Any],
    path: str,
) -> None:
    """Writes an Estimator's model with given values of its variables."""
    from hookbridge import estimator as estimator_lib

    with tempfile.TemporaryDirectory(prefix="hookbridge_export_") as folder:
        step = _whole(tf.compat.v1.GraphKeys.GLOBAL_STEP)
        checkpoint = saved.write(f"{folder}/model.ckpt-0", {**values, step: 0})
        estimator = estimator_lib.Estimator(model_fn, folder, params=params)
        exported = estimator.export_saved_model(
            f"{folder}/export", serving_input_fn, checkpoint_path=checkpoint
        )
        copy_tree(exported.decode(), path)


def copy_tree(source: str, target: str) -> None:
    """Copies a folder from any file system of `tf.io.gfile` to any other."""
    for file in upload.files_below(source):
        upload.send(source, file, target)
