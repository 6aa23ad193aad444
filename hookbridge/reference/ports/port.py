"""`hb.recording`: the steps of a port, from plain arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.arguments import string_mapping
from hookbridge.reference.ports import keras_steps, torch_modules
from hookbridge.reference.ports.port_arguments import (
    arrays_from,
    mean,
    settings_of,
    shape_text,
)
from hookbridge.reference.recordings.recording_writer import Writer, checked_options


def recording(
    directory: Any,
    weights: Any,
    *,
    weights_every: int | None = None,
    gradients: Literal["norms", "whole"] = "norms",
    max_megabytes: float = 1024,
    optimizer: Mapping[str, Any] | None = None,
) -> PortRecording:
    """Record a port in any framework, step by step, to be compared.

        with hb.recording("port/", weights=weights) as r:
            for batch in hb.replay("reference/").batches:
                loss, weights = my_step(weights, batch)
                r.step(loss=loss, weights=weights, batch=batch)

    A port in PyTorch gives its module, and one line around each step:

        with hb.recording("port/", module) as r:
            for batch in hb.replay("reference/").batches:
                loss = my_loss(module, batch)
                with r.torch_step(optimizer, loss, batch):
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()

    One in Keras 3 on JAX or PyTorch gives its model, and one callback:

        with hb.recording("port/", model) as r:
            model.fit(data, callbacks=[r.keras_callback()])

    TensorFlow is not imported. For `fit` on TensorFlow there is `hb.recorder`.

    Args:
      directory: the folder of the recording, which has none yet.
      weights: `{name: array}` before the first step, moving averages included; or a
        `torch.nn.Module`, or a built model of Keras 3 on JAX or PyTorch.
      weights_every: as of `hb.recorder`.
      gradients: as of `hb.recorder`.
      max_megabytes: as of `hb.recorder`.
      optimizer: the name and the numbers of the optimizer, such as
        `{"class": "Adam", "epsilon": 1e-8}`; they are named where updates differ.

    Returns:
      A context manager with a method `step`.

    Raises:
      errors.InvalidArgumentError: an argument has a bad value, or the folder has a
        recording.
      errors.UnwritableError: the folder cannot be written.
    """
    options = checked_options(weights_every, gradients, max_megabytes)
    settings = settings_of(optimizer)
    model, initial = None, weights
    # A model of Keras on PyTorch is a module too.
    if keras_steps.is_model(weights):
        model, initial = weights, keras_steps.arrays_of(weights)
        if not settings and weights.optimizer is not None:
            settings = settings_of(keras_steps.settings_of(weights.optimizer))
    elif torch_modules.is_model(weights):
        model, initial = weights, torch_modules.arrays_of(weights)
    arrays = arrays_from("weights", initial)
    facts = {
        "host": "port",
        "optimizer": settings,
        "versions": compat.installed_versions(),
    }
    writer = Writer(directory, facts, **options)
    writer.begin(arrays, {})
    shapes = {name: value.shape for name, value in arrays.items()}
    return PortRecording(writer, shapes, model)


class PortRecording:
    """What `recording` returns.

    Args:
      writer: what writes the files; `recording` makes it.
      shapes: `{name: shape}` of the initial weights.
      model: the module of PyTorch or the model of Keras that is recorded; None for one
        of plain arrays.
    """

    def __init__(
        self,
        writer: Writer,
        shapes: Mapping[str, tuple[int, ...]],
        model: object = None,
    ) -> None:
        self._writer = writer
        self._model = model
        self._at_end = contextlib.ExitStack()
        self._shapes = shapes
        self._state: Literal["new", "open", "closed"] = "new"

    def __enter__(self) -> PortRecording:
        if self._state != "new":
            raise errors.InvalidArgumentError(
                "A recording was entered a second time; expected one `with` block for "
                "each. Make another one: `hb.recording(...)` with another folder."
            )
        self._state = "open"
        return self

    def __exit__(self, *error: object) -> None:
        self._state = "closed"
        self._at_end.close()
        self._writer.close()

    def step(
        self,
        *,
        loss: object,
        weights: Mapping[str, Any],
        gradients: Mapping[str, Any] | None = None,
        batch: Mapping[str, Any] | None = None,
        learning_rate: object = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """Write one step. What is left out is not compared.

        Args:
          loss: the loss of this step's batch, before the update.
          weights: `{name: array}` after the update, moving averages included.
          gradients: `{name: array}` as the optimizer or the clipping got them.
          batch: `{name: array}` of what went in.
          learning_rate: the rate of this update.
          metrics: `{name: number}`.

        Raises:
          errors.InvalidArgumentError: an argument is not a number or not a dict of
            arrays, `weights` has other names or shapes than at first, `gradients` other
            ones than the weights, the recording would become too large, or it is not
            within its `with` block.
        """
        if self._state != "open":
            when = "before" if self._state == "new" else "after"
            raise errors.InvalidArgumentError(
                f"Received a step {when} the `with` block of the recording; expected "
                "it within: `with hb.recording(...) as r: r.step(...)`. The end of the "
                "block keeps the last weights."
            )
        arrays = arrays_from("weights", weights)
        self._check_shapes({name: value.shape for name, value in arrays.items()})
        of_weights = arrays_from("gradients", gradients)
        self._check_gradients(of_weights)
        line: dict[str, Any] = {
            "loss": mean("loss", loss),
            "metrics": {
                name: mean(f"metrics[{name!r}]", value)
                for name, value in string_mapping("metrics", metrics).items()
            },
            "applied_norms": {},
        }
        if learning_rate is not None:
            line["learning_rate"] = mean("learning_rate", learning_rate)
        self._writer.step(
            line,
            variables=arrays,
            batch=arrays_from("batch", batch),
            gradients=of_weights,
        )

    @contextlib.contextmanager
    def torch_step(
        self, optimizer: Any, loss: Any, batch: Mapping[str, Any] | None = None
    ) -> Iterator[None]:
        """Record the step that a block makes by `loss.backward(); optimizer.step()`.

        Gradients are recorded after `backward`, before a clipping in the block. A block
        that raises records nothing.

        Args:
          optimizer: the `torch.optim.Optimizer`, whose rate is recorded.
          loss: the loss of this step's batch.
          batch: `{name: array}` of what went in.

        Raises:
          errors.InvalidArgumentError: the recording is not of a module, or as of
            `step`.
        """
        if not torch_modules.is_model(self._model):
            raise errors.InvalidArgumentError(
                "`torch_step` was called on a recording of plain arrays; expected one "
                "of a module: `hb.recording(directory, module)`."
            )
        rate = optimizer.param_groups[0]["lr"]
        gradients = torch_modules.Gradients(self._model)
        try:
            yield
        finally:
            computed = gradients.end()
        self.step(
            loss=loss.detach().to("cpu").float().numpy(),
            weights=torch_modules.arrays_of(self._model),
            gradients=computed,
            batch=batch,
            learning_rate=np.float32(rate),
        )

    def keras_callback(self) -> Any:
        """Make a callback that records the steps of `fit`, on JAX and PyTorch.

        On JAX each step computes its loss and gradients again, to record them.

        Returns:
          A `keras.callbacks.Callback` for one `fit` of the model.

        Raises:
          errors.InvalidArgumentError: the recording is not of a model of Keras 3 on JAX
            or PyTorch.
          errors.RefusedError: when `fit` begins: the model's `train_step` is not
            Keras's own, or one call makes several steps.
        """
        if not keras_steps.is_model(self._model):
            raise errors.InvalidArgumentError(
                "`keras_callback` was called on a recording without a Keras 3 model on "
                "JAX or PyTorch; expected `hb.recording(directory, model)` with such a "
                "model. For `fit` on TensorFlow, use "
                "`callbacks=hb.as_callbacks([hb.recorder(directory)])`."
            )
        callback = keras_steps.callback(
            self._model, lambda step: self.step(**step._asdict())
        )
        self._at_end.callback(callback.end)
        return callback

    def _check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        for name in [*self._shapes, *shapes]:
            first, now = self._shapes.get(name), shapes.get(name)
            if now != first:
                raise errors.InvalidArgumentError(
                    f"Received weights in which {name!r} is {shape_text(now)}; it was "
                    f"{shape_text(first)} when the recording began. Expected the same "
                    "names and shapes in each step."
                )

    def _check_gradients(self, gradients: Mapping[str, Any]) -> None:
        for name, value in gradients.items():
            expected = self._shapes.get(name)
            if value.shape != expected:
                raise errors.InvalidArgumentError(
                    f"Received gradients in which {name!r} is "
                    f"{shape_text(value.shape)}; the weight of that name is "
                    f"{shape_text(expected)}. Expected the gradient of each weight, in "
                    "its name and shape."
                )
