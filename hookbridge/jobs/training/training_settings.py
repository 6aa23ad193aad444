"""The settings of the commands `train`, `evaluate` and `predict`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hookbridge import errors

Loop = Literal["session", "fit", "estimator"]
BadRows = Literal["stop", "skip"]
LOOPS: tuple[Loop, ...] = ("session", "fit", "estimator")


@dataclass(frozen=True)
class TrainingSettings:
    """One job; each attribute is the flag of the same name."""

    model_def: str
    loop: Loop | None = None
    model_dir: str = ""
    train_files: tuple[str, ...] = ()
    eval_files: tuple[str, ...] = ()
    predict_files: tuple[str, ...] = ()
    train_batch_size: int = 32
    eval_batch_size: int = 64
    train_steps: int | None = None
    epochs: int | None = None
    steps_per_epoch: int | None = None
    num_towers: int = 1
    batch_per_tower: bool = False
    num_workers: int = 0
    num_ps: int = 0
    sync: bool = False
    header_lines: int = 0
    bad_rows: BadRows = "stop"
    seed: int | None = None
    progress: bool = True
    report: bool = False

    def check(self) -> None:
        """Refuse flags that exclude each other, or that miss others."""
        if not self.model_dir:
            raise errors.InvalidArgumentError(
                "Received no --model_dir; expected the folder for checkpoints and logs."
            )
        self._check_fit()
        self._check_tasks()
        self._check_towers()

    def _check_fit(self) -> None:
        """Refuse flags that `fit` has no meaning for."""
        if self.loop == "fit" and (self.sync or self.batch_per_tower):
            flag = "--sync" if self.sync else "--batch_per_tower"
            raise errors.InvalidArgumentError(
                f"Received {flag} with --loop=fit; expected --loop=session or "
                "--loop=estimator, since `fit` trains asynchronously with parameter "
                "servers and splits each batch among its devices."
            )

    def _check_tasks(self) -> None:
        """Refuse workers without parameter servers, and `fit` the other way round."""
        if self.num_workers and not self.num_ps:
            raise errors.InvalidArgumentError(
                f"Received --num_workers={self.num_workers} and --num_ps=0; expected "
                "at least --num_ps=1: workers share their variables through parameter "
                "servers."
            )
        if self.loop == "fit" and self.num_ps and not self.num_workers:
            raise errors.InvalidArgumentError(
                f"Received --loop=fit, --num_ps={self.num_ps} and --num_workers=0; "
                "expected at least --num_workers=1: in `fit` with parameter servers "
                "the workers train, and the chief coordinates them."
            )

    def _check_towers(self) -> None:
        """Refuse batches that the towers cannot share."""
        shared = bool(self.train_files) and not self.batch_per_tower
        if shared and self.train_batch_size % self.num_towers:
            raise errors.InvalidArgumentError(
                f"Received --train_batch_size={self.train_batch_size} and "
                f"--num_towers={self.num_towers}; expected a batch size that is a "
                "multiple of --num_towers, since the towers share each batch. "
                "--batch_per_tower gives each its own."
            )

    def last_step(self, steps_per_epoch: int | None) -> int | None:
        """Return the global step at which the training ends; None if it has no end."""
        steps = [] if self.train_steps is None else [self.train_steps]
        if self.epochs is not None and steps_per_epoch is not None:
            steps.append(self.epochs * steps_per_epoch)
        return min(steps, default=None)
