"""Reads checkpoints of TF1 graphs and Estimators into Keras models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.hooked_loop import fit_saves
from hookbridge.adapters.keras_model import optimizers, variables
from hookbridge.adapters.live_session import global_step
from hookbridge.adapters.state import rewriting
from hookbridge.adapters.state.files import StateFiles
from hookbridge.adapters.state.write_order import release_all
from hookbridge.checkpoints.checkpoint_entries import Entries, converted
from hookbridge.checkpoints.matches import (
    MatchedVariables,
    RestoreReport,
    check_optimizer,
    check_weights,
)
from hookbridge.ground.arguments import shown, with_arguments
from hookbridge.ground.protocols import KerasModel
from hookbridge.ground.texts.nearest_names import suggestion


def restore(
    model: KerasModel,
    checkpoint: str,
    *,
    names: Mapping[str, str] | Callable[[str], str | None] | None = None,
    must_restore_weights: bool = True,
    must_restore_optimizer: bool = True,
) -> RestoreReport:
    """Restore a checkpoint of a v1 graph or an Estimator into a Keras model.

    Weights are looked up by the names of layers (`hidden/kernel`, with and without
    the name of the model). Slots of the optimizer are looked up by the names that the
    v1 optimizer of the same kind gives them. `optimizer.iterations` is read from
    `global_step`. A v1 `MomentumOptimizer` accumulates gradients and Keras's SGD
    accumulates updates, so its slot is multiplied by minus the learning rate.
    Callbacks go on with the state that was saved with the checkpoint, see
    `as_callbacks`.

    Args:
      model: a built Keras model of any flavour, also one in a v1 graph that `fit`
        trains. If it is compiled, the slots of its optimizer are made and restored too.
        So are the slots of optimizers that are attributes of the model, once these
        are built.
      checkpoint: a checkpoint prefix, or a directory, whose latest checkpoint is taken.
      names: `{variable of the model: checkpoint entry}` for names that differ, or a
        function that takes the name of a variable and returns its entry, or None. It
        is called once for each variable, and again for the weight of a slot without a
        separate entry, on the calling thread.
      must_restore_weights: whether a weight without a fitting entry is an error.
        Without it, neither is what does not fit of the optimizer.
      must_restore_optimizer: whether what could not be given back of a compiled
        model's optimizer is an error: a slot or a counter without a fitting entry, or
        an entry of an optimizer that no variable took. The rate may be missing, as in
        checkpoints of TF1.

    Returns:
      What matched and what did not.

    Raises:
      errors.InvalidArgumentError: there is no checkpoint, the model is not built, or
        `names` names an entry that does not exist.
      errors.CheckpointMismatchError: a weight has no entry or one of another shape,
        and `must_restore_weights` is set; or the optimizer could not be restored, and
        `must_restore_optimizer` is set too. Nothing is changed then.
    """
    release_all()
    path = _prefix(checkpoint)
    rewriting.undo(os.path.dirname(path) or ".")
    check_built(model)
    optimizers.build(model)
    reader = _reader(path)
    shapes = reader.get_variable_to_shape_map()
    wanted = [v for v in variables.model_variables(model) if not v.local]
    lookup = _lookup(names, [v.name for v in wanted])
    matches = MatchedVariables()
    entries = Entries(model, shapes, lookup, wanted)
    for variable in wanted:
        matches.add(variable, entries.of(variable), shapes)
    step = int(reader.get_tensor("global_step")) if "global_step" in shapes else None
    report = matches.report(shapes, step, StateFiles().epoch_of(path))
    if must_restore_weights:
        check_weights(path, model, matches, report)
        if must_restore_optimizer and optimizers.optimizer_of(model) is not None:
            check_optimizer(path, model, matches, report, shapes)
    values = [
        (variable.eager, converted(model, entry, reader.get_tensor(entry)))
        for variable, entry in matches.fitting
    ]
    variables.assign_all(model, values)
    global_step.note(model, step)
    fit_saves.note_restored(model, path)
    return report


def check_built(model: KerasModel) -> None:
    """Refuse a model without weights."""
    if not hasattr(model, "built"):
        raise errors.InvalidArgumentError(
            f"Received model={shown(model)}; expected a built Keras model."
        )
    if not model.built:
        raise errors.InvalidArgumentError(
            f"The model `{model.name}` is not built, so it has no weights yet. Call it "
            "on a batch, or `model.build(input_shape)`, before restoring."
        )


def _lookup(names: object, known: list[str]) -> Callable[[str], str | None] | None:
    """Return `names` as a function."""
    if names is None or (callable(names) and not isinstance(names, Mapping)):
        return with_arguments("names", names, "name") if names else None
    if not isinstance(names, Mapping):
        raise errors.InvalidArgumentError(
            f"Received `names={shown(names)}`; expected {{variable: entry}}, a "
            "function, or None."
        )
    for name in names:
        if name not in known:
            such = f"; expected names such as {', '.join(list(known)[:5])}"
            nearest = suggestion(str(name), known) or such
            raise errors.InvalidArgumentError(
                f"`names` has `{name}`, which is not a variable of the model{nearest}."
            )
    return names.get


def _reader(path: str) -> Any:
    try:
        return tf.train.load_checkpoint(path)
    except (tf.errors.OpError, RuntimeError, ValueError) as e:
        raise errors.InvalidArgumentError(
            f"The checkpoint {path} cannot be read; expected the files that a saver "
            f"wrote, whole. TensorFlow says: {e}"
        ) from e


def _prefix(checkpoint: object) -> str:
    """Return the prefix of a checkpoint that exists, from a prefix or a folder."""
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise errors.InvalidArgumentError(
            f"Received checkpoint={shown(checkpoint)}; expected a prefix such as "
            "`dir/model.ckpt-100` or a directory with a `checkpoint` file."
        )
    checkpoint = os.fspath(checkpoint)
    is_folder = tf.io.gfile.isdir(checkpoint)
    path = newest(checkpoint) if is_folder else checkpoint
    if not path or not tf.io.gfile.exists(f"{path}.index"):
        raise errors.InvalidArgumentError(
            f"There is no checkpoint at {shown(checkpoint)}; expected a prefix such as "
            "`dir/model.ckpt-100` or a directory with a `checkpoint` file."
        )
    return str(path)


def newest(folder: str) -> str | None:
    """Return the newest checkpoint of a folder; None if it has no file `checkpoint`."""
    state = os.path.join(folder, "checkpoint")
    try:
        path: str | None = tf.train.latest_checkpoint(folder)
        reason = "it names no checkpoint whose files are there"
    except (tf.errors.OpError, ValueError) as e:  # not a string: a ValueError too
        path, reason = None, str(e)
    if path is None and tf.io.gfile.exists(state):
        raise errors.InvalidArgumentError(
            f"{state} is damaged: {reason}. Expected what a saver wrote: the line "
            '`model_checkpoint_path: "model.ckpt-N"` of a checkpoint in this folder. '
            "Write that line, or remove the file: training then begins at step 0."
        )
    return path
