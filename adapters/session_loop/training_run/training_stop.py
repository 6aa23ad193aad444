"""Who ends a training run: its epochs, a callback or a hook."""

from __future__ import annotations

from hookbridge.ground.protocols import Coordinator, KerasModel, RunContext


class TrainingStop:
    """The end that somebody has asked for; `model` is that of the callbacks."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self.coord: Coordinator  # of the present session
        # Hooks after the callbacks may still stop it.
        self.last_run: RunContext | None = None
        self.epochs_are_over: bool = False
        self._is_of_hook = False  # a hook has set `stop_training`, not a callback

    @property
    def is_wanted(self) -> bool:
        """Return whether the run ends after the present step."""
        return self.epochs_are_over or bool(self._model.stop_training)

    @property
    def is_by_callback(self) -> bool:
        """Return whether a callback has set `stop_training`."""
        return bool(self._model.stop_training) and not self._is_of_hook

    def note_hook(self) -> None:
        """Note that a hook ends the run: callbacks read it from the model."""
        if not self._model.stop_training:
            self._model.stop_training = self._is_of_hook = True

    def note_end(self) -> None:
        """Note that the session ends: by a hook, if stopped before its epochs."""
        in_last_run = self.last_run is not None and self.last_run.stop_requested
        is_stopped = in_last_run or self.coord.should_stop()
        if is_stopped and not self.epochs_are_over:
            self.note_hook()

    def end_session(self) -> None:
        """End the session between two of its runs."""
        self.coord.request_stop()
