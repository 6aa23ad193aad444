"""What one of the two runs was like."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookbridge.demo.guests import DemoGuest
from hookbridge.lifecycle import Host, expected_events, overridden
from hookbridge.testing import EventLog, differences

TITLES: dict[Host, str] = {"session": "MonitoredTrainingSession", "fit": "Model.fit"}


@dataclass(frozen=True)
class LoopRun:
    """One run of the list.

    Attributes:
      host: `"session"` or `"fit"`.
      log: every event of every guest.
      guests: the list as it drove this run.
      steps: training steps until the run stopped.
      steps_per_epoch: steps in an epoch.
      validation_batches: batches in a validation.
      test_accuracy: share of test images classified rightly, from 0 to 1.
      test_loss: mean cross entropy on the test images.
      seconds: wall-clock time of the run, its compilation included.
      history: each epoch's logs.
      activity: what the user's own hook found.
      directory: where the guests wrote.
    """

    host: Host
    log: EventLog
    guests: list[DemoGuest]
    steps: int
    steps_per_epoch: int
    validation_batches: int
    test_accuracy: float
    test_loss: float
    seconds: float
    history: list[dict[str, float]]
    activity: dict[str, Any]
    directory: Path

    @property
    def epochs(self) -> int:
        """Epochs begun."""
        return -(-self.steps // self.steps_per_epoch)

    def files(self, guest: DemoGuest) -> list[str]:
        """Paths under `directory` of what `guest` wrote."""
        if guest.writes is None:
            return []
        root = self.directory / guest.writes
        found = [root] if root.is_file() else sorted(root.rglob("*"))
        return [
            str(path.relative_to(self.directory)) for path in found if path.is_file()
        ]

    def differences(self, guest: DemoGuest) -> list[str]:
        """Where `guest` saw something else than the documented events."""
        expected = expected_events(
            guest.kind,
            self.host,
            steps=self.steps,
            steps_per_epoch=self.steps_per_epoch,
            validation_batches=self.validation_batches,
            only=overridden(guest.guest, guest.kind),
        )
        return differences(self.log.of(guest.name), expected)
