"""Keras 3's own `fit` on JAX and PyTorch, recorded step by step without TensorFlow."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.ground import patching
from hookbridge.ground.batch_parts import named_parts
from hookbridge.ground.compat import keras_backend
from hookbridge.ground.protocols import KerasModel

_LOSS = "loss"  # the metric in which Keras keeps the mean of an epoch's losses


class KerasStep(NamedTuple):
    """What a step of `fit` did, as `PortRecording.step` takes it."""

    loss: Any
    weights: dict[str, Any]
    gradients: dict[str, Any]
    batch: dict[str, Any]
    learning_rate: Any


Write = Callable[[KerasStep], None]


def is_model(value: object) -> bool:
    """Return whether it is a model of Keras 3 on a backend other than TensorFlow."""
    keras: Any = sys.modules.get("keras")
    return keras_backend(keras) != "tensorflow" and isinstance(value, keras.Model)


def arrays_of(model: KerasModel) -> dict[str, Any]:
    """Return the weights and moving averages of a model: `{path: array}`."""
    return {v.path: _array(v.value) for v in _weights(model)}


def assign(model: KerasModel, arrays: Mapping[str, Any]) -> None:
    """Give a model the values of arrays that have the names of `arrays_of`."""
    for variable in _weights(model):
        if variable.path in arrays:
            variable.assign(arrays[variable.path])


def settings_of(optimizer: Any) -> dict[str, Any]:
    """Return the class and the numbers of an optimizer of Keras, but its rate."""
    numbers = {k: v for k, v in optimizer.get_config().items() if isinstance(v, float)}
    numbers.pop("learning_rate", None)
    return {"class": type(optimizer).__name__, **numbers}


def callback(model: Any, write: Write) -> Any:
    """Return a callback that gives `write` each step of the model's `fit`."""
    import keras

    class StepRecorder(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        """Goes around the model's `train_function` for as long as `fit` runs."""

        def __init__(self) -> None:
            super().__init__()
            self._patch: patching.Patches | None = None

        def on_train_begin(self, logs: Any = None) -> None:
            _check(self.model, model)
            ways = {"jax": _step_of_jax, "torch": _step_of_torch}
            step = ways[keras.backend.backend()](model, model.train_function, write)
            self._patch = patching.Patches(model, {"train_function": step})
            self._patch.install()

        def on_train_end(self, logs: object = None) -> None:
            self.end()

        def end(self) -> None:
            """Give the model its own function back, also after an error."""
            if self._patch is not None:
                self._patch.remove()

    return StepRecorder()


def _check(model: KerasModel, recorded: Any) -> None:
    """Raise where a `fit` cannot be recorded."""
    import keras

    why = ""
    if model is not recorded:
        why = "it is the `fit` of another model than the one that `hb.recording` got"
    elif type(model).train_step is not keras.Model.train_step:
        why = f"`{type(model).__name__}.train_step` is not Keras's own"
    elif model.steps_per_execution > 1:
        why = f"one call makes steps_per_execution={model.steps_per_execution} steps"
    elif keras.backend.backend() not in ("jax", "torch"):
        why = f"the backend is {keras.backend.backend()!r}, not JAX or PyTorch"
    if why:
        raise errors.RefusedError(
            f"`keras_callback` cannot record this `fit`: {why}. Write the steps in "
            "your own loop: `r.step(loss=..., weights=..., batch=...)`.",
            see="reference runs",
        )


def _step_of_jax(model: Any, plain: Any, write: Write) -> Any:
    """Return Keras's step on JAX, whose loss and gradients are computed again."""
    import keras

    jax: Any = importlib.import_module("jax")

    def loss_of(trainable: Any, others: Any, data: Any) -> Any:
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        variables, optimizer, metrics = others
        _, (loss, *_) = model.compute_loss_and_updates(
            trainable,
            variables,
            metrics,
            x,
            y,
            weights,
            training=True,
            optimizer_variables=optimizer,
        )
        return loss  # before a `LossScaleOptimizer` scales it

    gradients_of = jax.jit(jax.value_and_grad(loss_of))

    def step(state: Any, iterator: Any) -> Any:
        data = next(iterator)
        loss, gradients = gradients_of(state[0], state[1:], data)
        optimizer = model.optimizer
        now = list(zip(optimizer.variables, state[2], strict=True))
        with keras.StatelessScope(state_mapping=now):
            rate = _array(optimizer.learning_rate)
        batch = dict(_batch(data))
        logs, after = plain(state, iter([data]))
        every = [*model.trainable_variables, *model.non_trainable_variables]
        values = dict(zip(map(id, every), [*after[0], *after[1]], strict=True))
        names = [v.path for v in model.trainable_variables]
        write(
            KerasStep(
                _array(loss),
                {v.path: _array(values[id(v)]) for v in _weights(model)},
                dict(zip(names, map(_array, gradients), strict=True)),
                batch,
                rate,
            )
        )
        return logs, after

    return step


def _step_of_torch(model: KerasModel, plain: Any, write: Write) -> Any:
    """Return Keras's step on PyTorch, which leaves the gradients with the weights."""

    def step(data: Any) -> Any:
        before, rate = _losses(model), _array(model.optimizer.learning_rate)
        scale = getattr(model.optimizer, "dynamic_scale", None)
        scaled = 1.0 if scale is None else _array(scale.value)
        batch = dict(_batch(data[0]))
        logs = plain(data)
        after = _losses(model)
        gradients = {
            v.path: _array(v.value.grad) / scaled
            for v in model.trainable_variables
            if v.value.grad is not None
        }
        loss = (after[0] - before[0]) / (after[1] - before[1])
        write(KerasStep(loss, arrays_of(model), gradients, batch, rate))
        return logs

    return step


def _losses(model: KerasModel) -> tuple[float, float]:
    """Return the sum of the losses of an epoch up to now, and of how many examples."""
    (metric,) = (m for m in model.metrics if m.name == _LOSS)
    total, count = (float(_array(v.value)) for v in metric.variables)
    return total, count


def _weights(model: KerasModel) -> list[Any]:
    """Return the variables of a model without seeds, each once."""
    return list({id(v): v for v in model.weights}.values())


def _batch(data: object) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a batch, by the names that they have in other recordings."""
    import keras

    x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
    for name, value in (("x", x), ("y", y), ("sample_weight", weights)):
        parts = named_parts(name, value)
        yield from ((path, _array(part)) for path, part in parts if part is not None)


def _array(value: object) -> Any:
    import keras

    return keras.ops.convert_to_numpy(value)
