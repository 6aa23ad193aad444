"""The saver of a run whose hooks have made no variables of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.live_session.variables import ModelVariable, components

v1 = tf.compat.v1


class DefaultSaver(tf.compat.v1.train.Saver):  # type: ignore[misc]
    """The `Saver` that a `Scaffold` makes by default, without its ops.

    There would be a few ops for each variable of the model. A live session saves
    without them; they are made when somebody looks for one, as `restore` does.
    """

    def __init__(self, graph: Any) -> None:
        self._scope = graph.unique_name("save")
        self._has_ops = False
        super().__init__(
            saver_def=v1.train.SaverDef(
                filename_tensor_name=f"{self._scope}/Const:0",
                save_tensor_name=f"{self._scope}/Identity:0",
                restore_op_name=f"{self._scope}/restore_all",
                max_to_keep=5,
                sharded=True,
                keep_checkpoint_every_n_hours=10000,
                version=v1.train.SaverDef.V2,
            )
        )

    def export_meta_graph(self, *args: Any, **kwargs: Any) -> Any:
        """See `Saver.export_meta_graph`; the graph is exported as it is now."""
        # A hook keeps its saver, so the default graph may be that of a later run.
        hiding = getattr(v1.get_default_graph(), "hiding_variables", None)
        with contextlib.nullcontext() if hiding is None else hiding():
            return super().export_meta_graph(*args, **kwargs)

    def path_of(self, fetches: Any, feed_dict: Any) -> str | None:
        """The path for a run that only saves the model; None for any other run."""
        names = self.saver_def
        if type(fetches) is not str or fetches != names.save_tensor_name:
            return None
        if not feed_dict or set(feed_dict) != {names.filename_tensor_name}:
            return None
        return str(feed_dict[names.filename_tensor_name])

    def make_op(self, graph: Any, op_name: str) -> bool:
        """Makes the ops if one of them may have that name; returns whether it did."""
        if self._has_ops or not op_name.startswith(f"{self._scope}/"):
            return False
        self._has_ops = True
        with graph.growing():
            v1.train.Saver(sharded=True, allow_empty=True, name=f"{self._scope}/")
        return True


def save(path: str, variables: Mapping[str, ModelVariable]) -> None:
    """Writes a checkpoint."""
    with tf.device("CPU:0"):
        tensors = [
            tf.raw_ops.ReadVariableOp(
                resource=variable.handle, dtype=components(variable.eager)[0].dtype
            )
            for variable in variables.values()
        ]
        tf.raw_ops.SaveV2(
            prefix=path,
            tensor_names=list(variables),
            shape_and_slices=[""] * len(tensors),
            tensors=tensors,
        )
