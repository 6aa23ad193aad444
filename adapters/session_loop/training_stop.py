"""Who ends a training run: its epochs, a callback, or a hook."""

from __future__ import annotations

from hookbridge.ground.protocols import KerasModel


class TrainingStop:
    """The end that somebody has asked for; `model` is that of the callbacks."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self.epochs_are_over: bool = False
        self._is_of_hook = False  # a hook has set `stop_training`, not a callback

    @property
    def is_wanted(self) -> bool:
        """Whether the run ends after the present step."""
        return self.epochs_are_over or bool(self._model.stop_training)

    @property
    def by_callback(self) -> bool:
        """Whether a callback has set `stop_training`."""
        return bool(self._model.stop_training) and not self._is_of_hook

    def by_hook(self) -> None:
        """A hook ends the run: callbacks read it from the model, as in `fit`."""
        if not self._model.stop_training:
            self._model.stop_training = self._is_of_hook = True
