"""`hb.recording`: the steps of a port, from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal

import numpy as np

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.arguments import amount, positive, shown, string_mapping
from hookbridge.insight.reference.recording_files import Writer


def recording(
    directory: Any,
    weights: Mapping[str, Any],
    *,
    weights_every: int | None = None,
    gradients: Literal["norms", "whole"] = "norms",
    max_megabytes: float = 1024,
    optimizer: Mapping[str, Any] | None = None,
) -> PortRecording:
    """Records a port in any framework, step by step, to be compared.

        with hb.recording("port/", weights=weights) as r:
            for batch in hb.replay("reference/").batches:
                loss, weights = my_step(weights, batch)
                r.step(loss=loss, weights=weights, batch=batch)

    TensorFlow is not imported.

    Args:
      directory: the folder of the recording, which has none yet.
      weights: `{name: array}` before the first step, moving averages included.
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
    positive("weights_every", weights_every)
    amount("max_megabytes", max_megabytes)
    if gradients not in ("norms", "whole"):
        raise errors.InvalidArgumentError(
            f'Received `gradients={shown(gradients)}`; expected "norms" or "whole".'
        )
    settings = [dict(optimizer)] if optimizer else []
    facts = {
        "host": "port",
        "optimizer": settings,
        "versions": compat.installed_versions(),
    }
    writer = Writer(
        directory,
        facts,
        every=weights_every,
        whole_gradients=gradients == "whole",
        max_megabytes=max_megabytes,
    )
    arrays = _arrays("weights", weights)
    writer.begin(arrays, {})
    return PortRecording(writer, {name: value.shape for name, value in arrays.items()})


class PortRecording:
    """What `recording` returns.

    Args:
      writer: what writes the files; `recording` makes it.
      shapes: `{name: shape}` of the initial weights.
    """

    def __init__(self, writer: Writer, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._writer = writer
        self._shapes = shapes

    def __enter__(self) -> PortRecording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()

    def step(
        self,
        *,
        loss: Any,
        weights: Mapping[str, Any],
        gradients: Mapping[str, Any] | None = None,
        batch: Mapping[str, Any] | None = None,
        learning_rate: Any = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes one step. What is left out is not compared.

        Args:
          loss: the loss of this step's batch, before the update.
          weights: `{name: array}` after the update, moving averages included.
          gradients: `{name: array}` as the optimizer or the clipping got them.
          batch: `{name: array}` of what went in.
          learning_rate: the rate of this update.
          metrics: `{name: number}`.

        Raises:
          errors.InvalidArgumentError: an argument is no number or no dict of arrays,
            `weights` has other names or shapes than at first, or the recording would
            become too large.
        """
        arrays = _arrays("weights", weights)
        self._check_shapes({name: value.shape for name, value in arrays.items()})
        line: dict[str, Any] = {
            "loss": _mean("loss", loss),
            "metrics": {
                name: _mean(f"metrics[{name!r}]", value)
                for name, value in string_mapping("metrics", metrics).items()
            },
            "applied_norms": {},
        }
        if learning_rate is not None:
            line["learning_rate"] = _mean("learning_rate", learning_rate)
        self._writer.step(
            line,
            variables=arrays,
            batch=_arrays("batch", batch),
            gradients=_arrays("gradients", gradients),
        )

    def _check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        for name in [*self._shapes, *shapes]:
            first, now = self._shapes.get(name), shapes.get(name)
            if now != first:
                raise errors.InvalidArgumentError(
                    f"Received weights in which {name!r} is {_shape(now)}; it was "
                    f"{_shape(first)} when the recording began. Expected the same "
                    "names and shapes in each step."
                )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else f"of shape {list(shape)}"


def _mean(name: str, value: Any) -> float:
    try:
        return float(np.mean(value))
    except (TypeError, ValueError) as e:
        raise errors.InvalidArgumentError(
            f"Received {name}={shown(value)}; expected a number, or what NumPy makes "
            "an array of numbers from."
        ) from e


def _arrays(name: str, value: Any) -> dict[str, Any]:
    arrays = {key: np.array(each) for key, each in string_mapping(name, value).items()}
    for key, array in arrays.items():
        if array.dtype.kind in "OSU":  # objects and texts
            raise errors.InvalidArgumentError(
                f"Received {name}[{key!r}] of type `{type(value[key]).__name__}`; "
                "expected what NumPy makes an array of numbers from."
            )
    return arrays
