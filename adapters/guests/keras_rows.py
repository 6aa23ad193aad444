"""What Keras's own callbacks are: one row each, read by every room.

A class that derives from one has its row. A new callback of Keras is a new row.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

# Why a host refuses a callback, and the way out.
Refusal = tuple[str, str]


class KerasRow(NamedTuple):
    """What is known about a callback class of Keras."""

    name: str = ""  # its class; empty for a callback that is not of Keras
    # Where it writes: the attribute with the path, and whether that is of a folder.
    writes: str = ""
    writes_folder: bool = False
    # When the folder that it writes to is there: made by itself in `set_model`, as it
    # saves, or by somebody else.
    makes_folder: Literal["early", "late", "never"] = "late"
    # Whether one process of a job calls it: it writes files or talks to a server.
    is_for_chief: bool = False
    saves_model: bool = False
    is_backup: bool = False
    # The attributes that are state. All others are configuration, or belong to one
    # process (files, writers, clocks).
    state_attributes: tuple[str, ...] = ()
    sets_rate: bool = False
    # What it monitors: the entry in its attribute `monitor`, that only if it saves the
    # best, or the loss of each batch.
    monitors: Literal["monitor", "monitor of the best", "loss"] = "monitor"
    # Whether its methods are a user's functions, which may add entries to `logs`.
    has_functions: bool = False
    is_progress_bar: bool = False
    is_of_each_list: bool = False  # Keras adds it to lists, also if they have one
    needs_metrics: bool = False  # in its `params`
    needs_tensorboard: bool = False  # the package
    refused_in_session: Refusal | None = None
    refused_in_keras2: Refusal | None = None


HISTORY = "History"
_BACKUP = KerasRow(
    "BackupAndRestore",
    writes="backup_dir",
    writes_folder=True,
    is_for_chief=True,
    is_backup=True,
)
_ROWS = (
    _BACKUP,
    _BACKUP._replace(name="BackupAndRestoreExperimental"),
    KerasRow("BaseLogger", is_of_each_list=True, needs_metrics=True),
    KerasRow("CSVLogger", writes="filename", makes_folder="never", is_for_chief=True),
    KerasRow(
        "EarlyStopping",
        state_attributes=(
            "wait",
            "best",
            "best_epoch",
            "stopped_epoch",
            "best_weights",
        ),
    ),
    KerasRow(HISTORY, is_of_each_list=True, state_attributes=("history", "epoch")),
    KerasRow("LambdaCallback", has_functions=True),
    KerasRow("LearningRateScheduler", sets_rate=True),
    KerasRow(
        "ModelCheckpoint",
        writes="filepath",
        is_for_chief=True,
        saves_model=True,
        state_attributes=(
            "best",
            "epochs_since_last_save",
            "_batches_seen_since_last_saving",
            "_last_batch_seen",
        ),
        monitors="monitor of the best",
    ),
    KerasRow(
        "OrbaxCheckpoint",
        refused_in_session=(
            "it saves the state tree of a Keras 3 model, and a graph holds none",
            "use `CheckpointSaverHook`, or `ModelCheckpoint(save_weights_only=True)`",
        ),
    ),
    KerasRow(
        "ProgbarLogger", is_of_each_list=True, is_for_chief=True, is_progress_bar=True
    ),
    KerasRow(
        "ReduceLROnPlateau",
        state_attributes=("best", "wait", "cooldown_counter"),
        sets_rate=True,
    ),
    KerasRow("RemoteMonitor", is_for_chief=True),
    KerasRow(
        "SidecarEvaluatorModelExport",
        writes="filepath",
        is_for_chief=True,
        saves_model=True,
    ),
    KerasRow(
        "SwapEMAWeights",
        refused_in_session=(
            "it swaps weights with the moving averages that a Keras 3 optimizer keeps, "
            "and a graph has no Keras 3 optimizer",
            "keep the averages with `tf.compat.v1.train.ExponentialMovingAverage` in "
            "the model_fn and restore them with its `variables_to_restore()`",
        ),
        refused_in_keras2=(
            "it swaps the moving averages of a Keras 3 optimizer",
            "give the Keras 2 optimizer `use_ema=True`; it then swaps them itself",
        ),
    ),
    KerasRow(
        "TensorBoard",
        writes="log_dir",
        writes_folder=True,
        makes_folder="early",
        is_for_chief=True,
        state_attributes=("_global_train_batch", "_global_test_batch"),
        needs_tensorboard=True,
    ),
    KerasRow("TerminateOnNaN", monitors="loss"),
    KerasRow(
        "UpdateEmbeddingCallback",
        refused_in_session=(
            "it rebuilds the train function of a Keras model while it runs, and the "
            "graph of a session is final",
            "train this model with `Model.fit`",
        ),
    ),
)
ROWS: dict[str, KerasRow] = {row.name: row for row in _ROWS}
_OTHER = KerasRow()


def row(keras_class: str) -> KerasRow:
    """Return the row of a class of Keras, by its name; an empty one for others."""
    return ROWS.get(keras_class, _OTHER)
