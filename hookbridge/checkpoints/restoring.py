"""Reads checkpoints of TF1 graphs and Estimators into Keras models."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.hooked_loop import fit_saves
from hookbridge.adapters.live_session import global_step, live_variables
from hookbridge.adapters.live_session.live_variables import ModelVariable
from hookbridge.adapters.state import rewriting
from hookbridge.adapters.state.files import StateFiles
from hookbridge.adapters.state.write_order import release_all
from hookbridge.checkpoints.checkpoint_entries import converted, entry_of
from hookbridge.ground.arguments import shown, with_arguments
from hookbridge.ground.nearest_names import nearest
from hookbridge.ground.protocols import KerasModel

# Entries that Keras computes instead of storing.
_DERIVED = ("beta1_power", "beta2_power", "signal_early_stopping/STOP")


class RestoreReport(NamedTuple):
    """What `restore` did.

    Attributes:
      restored: `{variable of the model: checkpoint entry}`.
      kept: variables of the model that the checkpoint has nothing for; they keep
        their values.
      unused: entries of the checkpoint that no variable took.
      mismatched: `{variable: reason}` where an entry exists but does not fit.
      global_step: the step of the checkpoint, None if it has none.
      epoch: the `initial_epoch` with which `fit` and `OwnLoop` go on, by the state of
        callbacks beside the checkpoint. None if there is no such state, or its loop had
        no epochs; `global_step` divided by the steps of an epoch says it then.
    """

    restored: Mapping[str, str]
    kept: tuple[str, ...]
    unused: tuple[str, ...]
    mismatched: Mapping[str, str]
    global_step: int | None = None
    epoch: int | None = None

    def __str__(self) -> str:
        lines = [f"restored {len(self.restored)} variables"]
        lines += [f"  {name} <- {entry}" for name, entry in self.restored.items()]
        for title, names in (
            ("kept as they were (not in the checkpoint)", self.kept),
            ("in the checkpoint, not in the model", self.unused),
        ):
            if names:
                lines += [f"{title}: {len(names)}", *(f"  {name}" for name in names)]
        if self.mismatched:
            lines.append(f"did not fit: {len(self.mismatched)}")
            lines += [f"  {name}: {why}" for name, why in self.mismatched.items()]
        return "\n".join(lines)


def restore(
    model: KerasModel,
    checkpoint: str,
    *,
    names: Mapping[str, str] | Callable[[str], str | None] | None = None,
    must_restore_weights: bool = True,
) -> RestoreReport:
    """Restores a checkpoint of a v1 graph or an Estimator into a Keras model.

    Weights are looked up by the names of layers (`hidden/kernel`, with and without
    the name of the model). Slots of the optimizer are looked up by the names that the
    v1 optimizer of the same kind gives them. `optimizer.iterations` is read from
    `global_step`. A v1 `MomentumOptimizer` accumulates gradients and Keras's SGD
    accumulates updates, so its slot is multiplied by minus the learning rate.
    Callbacks go on with the state that was saved beside the checkpoint, see
    `as_callbacks`.

    Args:
      model: a built Keras model of any flavour, also one in a v1 graph that `fit`
        trains. If it is compiled, the slots of its
        optimizer are made and restored too; those of optimizers that are attributes
        of the model are, once these are built.
      checkpoint: a checkpoint prefix, or a directory, whose latest checkpoint is taken.
      names: `{variable of the model: checkpoint entry}` for names that differ, or a
        function that takes the name of a variable and returns its entry, or None. It
        is called once for each variable, and again for the weight of a slot without an
        entry of its own, on the calling thread.
      must_restore_weights: whether a weight without a fitting entry is an error.

    Returns:
      What matched and what did not.

    Raises:
      errors.InvalidArgumentError: there is no checkpoint, the model is not built, or
        `names` names an entry that does not exist.
      errors.CheckpointMismatchError: a weight has no entry or one of another shape,
        and `must_restore_weights` is set. Nothing is changed then.
    """
    release_all()
    path = _prefix(checkpoint)
    rewriting.undo(os.path.dirname(path) or ".")
    _check_built(model)
    _build_optimizer(model)
    reader = _reader(path)
    shapes = reader.get_variable_to_shape_map()
    variables = [v for v in live_variables.model_variables(model) if not v.local]
    lookup = _lookup(names, [v.name for v in variables])
    matches = _Matches()
    for variable in variables:
        entry = entry_of(model, variable, shapes, lookup, variables)
        matches.add(variable, entry, shapes)
    step = int(reader.get_tensor("global_step")) if "global_step" in shapes else None
    report = matches.report(shapes, step, StateFiles().epoch_of(path))
    lost = matches.lost({id(live_variables.tf_variable(w)) for w in model.weights})
    if lost and must_restore_weights:
        raise errors.CheckpointMismatchError(
            f"{path} has nothing that fits {', '.join(f'`{n}`' for n in lost)} of the "
            f"model `{model.name}`. Map the names with `names={{...}}`, or accept it "
            f"with `must_restore_weights=False`.\n{report}"
        )
    values = [
        (variable.eager, converted(model, entry, reader.get_tensor(entry)))
        for variable, entry in matches.fitting
    ]
    live_variables.assign_all(model, values)
    global_step.note(model, step)
    fit_saves.note_restored(model, path)
    return report


class _Matches:
    """The variables of a model, with the entries that fit them, or why none does."""

    def __init__(self) -> None:
        self.fitting: list[tuple[ModelVariable, str]] = []
        # Why no entry fits; nothing where there is no entry.
        self._unfit: list[tuple[ModelVariable, str]] = []

    def add(
        self, variable: ModelVariable, entry: str | None, shapes: Mapping[str, Any]
    ) -> None:
        """Notes a variable with its entry, if there is one."""
        if entry is None:
            self._unfit.append((variable, ""))
            return
        shape = live_variables.components(variable.eager)[0].shape.as_list()
        if list(shapes[entry]) == shape:
            self.fitting.append((variable, entry))
            return
        reason = f"`{entry}` has shape {list(shapes[entry])}, expected {shape}"
        self._unfit.append((variable, reason))

    def lost(self, weights: Collection[int]) -> list[str]:
        """The names of weights, given by their ids, that no entry fits."""
        return [v.name for v, _ in self._unfit if id(v.eager) in weights]

    def report(
        self, entries: Iterable[str], step: int | None, epoch: int | None
    ) -> RestoreReport:
        """What a restore does with the entries of the checkpoint."""
        taken = {entry for _, entry in self.fitting}
        return RestoreReport(
            restored={v.name: entry for v, entry in self.fitting},
            kept=tuple(v.name for v, reason in self._unfit if not reason),
            unused=tuple(sorted(set(entries) - taken - set(_DERIVED))),
            mismatched={v.name: reason for v, reason in self._unfit if reason},
            global_step=step,
            epoch=epoch,
        )


def _check_built(model: KerasModel) -> None:
    """Refuses a model without weights."""
    if not hasattr(model, "built"):
        raise errors.InvalidArgumentError(
            f"Received model={shown(model)}; expected a built Keras model."
        )
    if not model.built:
        raise errors.InvalidArgumentError(
            f"The model `{model.name}` is not built, so it has no weights yet. Call it "
            "on a batch, or `model.build(input_shape)`, before restoring."
        )


def _lookup(names: Any, variables: list[str]) -> Callable[[str], str | None] | None:
    """`names` as a function."""
    if names is None or (callable(names) and not isinstance(names, Mapping)):
        return with_arguments("names", names, "name") if names else None
    if not isinstance(names, Mapping):
        raise errors.InvalidArgumentError(
            f"Received `names={shown(names)}`; expected {{variable: entry}}, a "
            "function, or None."
        )
    for name in names:
        if name not in variables:
            near = ", ".join(f"`{n}`" for n in nearest(str(name), variables))
            raise errors.InvalidArgumentError(
                f"`names` has `{name}`, which is no variable of the model; the "
                f"nearest: {near}."
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


def _prefix(checkpoint: Any) -> str:
    """The prefix of a checkpoint that exists, from a prefix or a folder."""
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
    """The newest checkpoint of a folder; None if it has no file `checkpoint`."""
    state = os.path.join(folder, "checkpoint")
    try:
        path: str | None = tf.train.latest_checkpoint(folder)
        reason = "it names no checkpoint whose files are there"
    except (tf.errors.OpError, ValueError) as e:  # no text is a ValueError too
        path, reason = None, str(e)
    if path is None and tf.io.gfile.exists(state):
        raise errors.InvalidArgumentError(
            f"{state} is damaged: {reason}. Expected what a saver wrote: the line "
            '`model_checkpoint_path: "model.ckpt-N"` of a checkpoint in this folder. '
            "Write that line, or remove the file to begin anew."
        )
    return path


def _build_optimizer(model: KerasModel) -> None:
    optimizer = getattr(model, "optimizer", None)
    if not tf.executing_eagerly() and hasattr(model, "_make_train_function"):
        if optimizer is not None:
            model._make_train_function()  # which makes the slots in a v1 graph
        return
    build = getattr(optimizer, "build", None)
    if build is not None and not getattr(optimizer, "built", False):
        with model.distribute_strategy.scope():
            build(model.trainable_variables)
