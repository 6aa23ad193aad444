"""`hb.replay`: the initial weights and the batches of a recording, for a port."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import instance, shown, string_mapping
from hookbridge.ground.texts.counted import counted
from hookbridge.ground.texts.nearest_names import nearest
from hookbridge.reference.ports import keras_steps, torch_modules
from hookbridge.reference.recordings.recording_files import Recording
from hookbridge.reference.recordings.variable_matching import Matching, match


def replay(directory: object) -> Replay:
    """Read a recording, to train a port on the same data from the same weights.

    NumPy is enough: TensorFlow is imported by `restore` and `dataset` alone.

    Args:
      directory: the folder that `hookbridge record` or `hb.recorder` has written.

    Returns:
      The recording.

    Raises:
      errors.InvalidArgumentError: the folder has no recording.
    """
    return Replay(Recording(directory))


class Replay:
    """What `replay` returns.

    Attributes:
      recording: the recording itself.
      weights: `{name: array}` before the first step, moving averages included.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        names = recording.shapes("weight", "state")
        initial = recording.initial
        self.weights: dict[str, Any] = {name: initial[name] for name in names}

    def __len__(self) -> int:
        return len(self.recording.steps)

    @property
    def batches(self) -> Iterator[dict[str, Any]]:
        """`{name: array}` of each step, in order."""
        return (step.arrays("batch") for step in self.recording.steps)

    @property
    def losses(self) -> list[float | None]:
        """The loss of each step; None where it was not recorded."""
        return [step.loss for step in self.recording.steps]

    def match(
        self, shapes: Mapping[str, Any], names: Mapping[str, str] | None = None
    ) -> Matching:
        """Return which recorded weight belongs to which of a port's.

        Args:
          shapes: `{name: shape}` of the port, or `{name: array}`, in order.
          names: `{recorded name: name in the port}` where the rules do not find it.

        Returns:
          The pairs, and what is left on both sides.

        Raises:
          errors.InvalidArgumentError: `names` has a name that does not exist, or
            `shapes` is not a dict of shapes.
        """
        recorded = {name: value.shape for name, value in self.weights.items()}
        instance("shapes", shapes, Mapping, "a dict {name: shape or array}")
        of_port = {n: _shape(n, v) for n, v in string_mapping("shapes", shapes).items()}
        return match(recorded, of_port, names)

    def __str__(self) -> str:
        """Return the step, losses, batches and weights, as lines."""
        return "\n".join(described_recording(self.recording))

    def restore(
        self,
        model: Any,
        *,
        names: Mapping[str, str] | None = None,
        must_restore_weights: bool = True,
    ) -> Any:
        """Give a model the initial weights, matched as `match` does.

        Args:
          model: a built model of any Keras flavour, or a `torch.nn.Module`. A kernel of
            PyTorch gets its own order of axes; the gates of a cell keep TensorFlow's.
          names: `{recorded name: name in the model}` where the rules do not find it.
          must_restore_weights: whether a weight of the model without a recorded one is
            an error.

        Returns:
          What `hb.checkpoints.restore` returns; of a module, and of a model of Keras 3
          on JAX or PyTorch, what `match` returns.

        Raises:
          errors.InvalidArgumentError: the model is not built, or `names` has a name
            that does not exist.
          errors.CheckpointMismatchError: a weight has no partner of its shape, and
            `must_restore_weights` is set. Nothing is changed then.
        """
        for kind in (keras_steps, torch_modules):
            # A model of Keras on PyTorch is a module too.
            if kind.is_model(model):
                shapes = kind.arrays_of(model)
                matching = self._match_all(shapes, names, must_restore_weights)
                pairs = matching.pairs.items()
                kind.assign(model, {port: self.weights[name] for name, port in pairs})
                return matching
        from hookbridge import checkpoints
        from hookbridge.adapters.keras_model import variables
        from hookbridge.checkpoints.restoring import check_built

        check_built(model)
        every = variables.model_variables(model)
        shapes = {
            v.name: variables.components(v.eager)[0].shape for v in every if v.is_weight
        }
        matching = self._match_all(shapes, names, must_restore_weights)
        entries = {partner: name for name, partner in matching.pairs.items()}
        return checkpoints.restore(
            model,
            str(self.recording.folder / "checkpoint"),
            names=entries,
            must_restore_weights=must_restore_weights,
            must_restore_optimizer=False,  # a recording promises the weights
        )

    def _match_all(
        self, shapes: Mapping[str, Any], names: Any, must_restore_weights: bool
    ) -> Matching:
        """Return the matching of a model; raise where a weight has no partner."""
        matching = self.match(shapes, names)
        if matching.unmatched_port and must_restore_weights:
            name = matching.unmatched_port[0]
            recorded = (*matching.unmatched, "recorded name")[0]
            raise errors.CheckpointMismatchError(
                f"The recording has no weight that fits `{name}` of the model by its "
                f'name or shape. Name it: `names={{"{recorded}": "{name}"}}`, or '
                "accept it with `must_restore_weights=False`. Recorded weights "
                f"without a partner: {', '.join(matching.unmatched) or 'none'}."
            )
        return matching

    def dataset(
        self,
        x: str | Sequence[str] = "x",
        y: str | Sequence[str] | None = "y",
        sample_weight: str | None = None,
    ) -> Any:
        """Return the batches as a `tf.data.Dataset` for `fit`, in order.

        Args:
          x: the name of the input in a batch, or a list of names for several inputs.
          y: the name of the labels, or a list; None for none.
          sample_weight: the name of the weights of examples; None for none.

        Returns:
          A dataset of `(x, y)`, of `x` alone, or of `(x, y, sample_weight)`.

        Raises:
          errors.InvalidArgumentError: a batch has no such name.
        """
        import tensorflow as tf

        parts = [part for part in (x, y, sample_weight) if part is not None]
        batches = [tuple(_pick(b, part) for part in parts) for b in self.batches]

        def spec(*arrays: Any) -> Any:
            shapes = [tf.TensorShape(array.shape) for array in arrays]
            shape = shapes[0]
            for further in shapes[1:]:
                shape = shape.most_specific_compatible_shape(further)
            return tf.TensorSpec(shape, arrays[0].dtype)

        signature = tf.nest.map_structure(spec, *batches)
        if len(parts) == 1:
            batches, signature = [batch for (batch,) in batches], signature[0]
        data = tf.data.Dataset.from_generator(
            lambda: iter(batches), output_signature=signature
        )
        return data.apply(tf.data.experimental.assert_cardinality(len(batches)))


def described_recording(recording: Recording) -> Iterator[str]:
    """Yield what a recording has, in lines."""
    steps = recording.steps
    yield f"{recording.folder}: {counted(len(steps), 'step')}"
    losses = [step.loss for step in steps if step.loss is not None]
    if losses:
        yield f"  loss: {losses[0]:.6g} in the first step, {losses[-1]:.6g} in the last"
    elif steps:
        yield "  loss: not recorded"
    if steps:
        batch = steps[0].line["batch"].items()
        parts = [f"{name} {shape} {dtype}" for name, (shape, dtype) in batch]
        yield f"  batch: {', '.join(parts) or 'not recorded'}"
        number = len(steps[0].line["gradient_norms"])
        yield (
            f"  gradients: of {counted(number, 'weight')}"
            if number
            else "  gradients: none"
        )
    for kind, word in (("weight", "weights"), ("state", "other state")):
        shapes = recording.shapes(kind)
        if shapes:
            listed = ", ".join(f"{n} {list(shape)}" for n, shape in shapes.items())
            yield f"  {word}: {listed}"


def _shape(name: str, value: Any) -> tuple[int, ...]:
    """Return a shape, or that of an array or variable."""
    try:
        return tuple(operator.index(size) for size in getattr(value, "shape", value))
    except (TypeError, ValueError) as e:
        raise errors.InvalidArgumentError(
            f"Received `shapes[{name!r}]={shown(value)}`; expected a shape such as "
            "(2, 3), or an array."
        ) from e


def _pick(batch: Mapping[str, Any], names: str | Sequence[str]) -> Any:
    """Return an array of a batch, or several."""
    if not isinstance(names, str):
        return tuple(_pick(batch, name) for name in names)
    if names not in batch:
        known = ", ".join(f'"{name}"' for name in nearest(names, batch)) or "nothing"
        raise errors.InvalidArgumentError(
            f'The recorded batches have no "{names}"; the nearest: {known}.'
            " Name the input and the labels: `dataset(x=..., y=...)`."
        )
    return batch[names]
