"""The optimizer of a session when a callback lends it to a model, which is saved."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.ground import compat


class LentOptimizer(tf.__internal__.tracking.AutoTrackable):  # type: ignore[misc]
    """What Keras and TensorFlow ask of an optimizer whose model they save.

    An `AltModelCheckpoint` gives the optimizer to the model that it saves. The values
    of the optimizer are in a graph, so the files have none but its counter.
    """

    _self_setattr_tracking = False

    def __init__(self) -> None:
        self._is_of_other = False  # whether another model has it
        self._saved: Any = None  # what a SavedModel of that model has of it
        self._has_said = False

    @property
    def iterations(self) -> Any:
        """The counter of the steps."""
        raise NotImplementedError

    def _maybe_initialize_trackable(self) -> None:
        """Prepare it to be saved with a model of Keras; refuse all others."""
        names = compat.running_locals("set_attribute")
        if names is not None and names["name"] == "optimizer":
            self._is_of_other = True
        if not self._is_of_other:
            raise errors.LiveModelError(
                "Something saves `self.model.optimizer` alone. In a session loop under "
                "hookbridge the optimizer is in the graph, and its variables are in "
                "the session's checkpoints. Save `self.model`: "
                "`tf.train.Checkpoint(model=self.model)` has the whole session.",
                see="model in a session",
            )
        super()._maybe_initialize_trackable()

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        # A SavedModel is not loaded without the counter of its optimizer.
        counter = self.iterations
        if self._saved is None:
            self._saved = tf.__internal__.tracking.wrap([counter])
        self.say_unsaved()
        return {"_iterations": counter, "_variables": self._saved}

    def save_own_variables(self, store: object) -> None:
        """Save nothing of it in the file of the other model."""
        self.say_unsaved()

    def _obj_type(self) -> str:
        """Return what Keras 3 asks of an object that it saves."""
        return "Optimizer"

    def say_unsaved(self) -> None:
        """Warn once that a file has no slots of the optimizer."""
        if not self._has_said:
            self._has_said = True
            logging.warning(
                "hookbridge: `self.model.optimizer` was given to another model, which "
                "a callback saves. The file has no slots of the optimizer: they are "
                "in the session, and in its checkpoints."
            )
