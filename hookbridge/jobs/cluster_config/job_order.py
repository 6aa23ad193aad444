"""What an orchestrator is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hookbridge import errors
from hookbridge.jobs.cluster_config.job_config import JOBS

PORT = 2222
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# Of a service's name, which has the task behind it, such as `-evaluator-0`.
_LONGEST_NAME = 63 - len("-evaluator-0-0")
# GPUs of the types for which AI Platform had names of its own; no node has these names.
_PLATFORM_GPUS = {
    **dict.fromkeys(("standard", "large_model", "complex_model_s"), 0),
    **dict.fromkeys(("complex_model_m", "complex_model_l"), 0),
    **dict.fromkeys(("standard_gpu", "standard_p100", "standard_v100"), 1),
    "large_model_v100": 1,
    **{f"complex_model_m_{gpu}": 4 for gpu in ("gpu", "p100", "v100")},
    **{f"complex_model_l_{gpu}": 8 for gpu in ("gpu", "v100")},
}


class Replicas(NamedTuple):
    """The tasks of one kind, and the machine type that they run on."""

    job: str
    number: int
    machine: str

    @property
    def gpus(self) -> int:
        """The GPUs that the name of the machine type promises to each task."""
        return _PLATFORM_GPUS.get(self.machine, 0)

    @property
    def node_type(self) -> str:
        """The machine type as nodes in the cloud call it, or ""."""
        return "" if self.machine in _PLATFORM_GPUS else self.machine


@dataclass(frozen=True)
class JobOrder:
    """A job for an orchestrator; `volume`, `CLAIM:/folder`, has its model directory."""

    numbers: Mapping[str, int]
    machines: Mapping[str, str]
    command: tuple[str, ...]
    name: str
    image: str = ""
    grace_secs: float = 60.0
    volume: str = ""

    def __post_init__(self) -> None:
        """Check the values; messages name their flags."""
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST_NAME:
            raise errors.InvalidArgumentError(
                f"Received --name={self.name!r}; expected at most {_LONGEST_NAME} "
                "small letters, digits and dashes, with a letter first and no dash "
                "last, as in every host name."
            )
        claim, _, folder = self.volume.partition(":")
        if self.volume and not (_NAME.fullmatch(claim) and folder.startswith("/")):
            raise errors.InvalidArgumentError(
                f"Received --volume={self.volume!r}; expected the name of a "
                "PersistentVolumeClaim and a folder, for example models:/models."
            )

    @property
    def replicas(self) -> list[Replicas]:
        """The kinds of tasks that the job has, the chief first."""
        return [
            Replicas(job, self.numbers[job], self.machines.get(job, ""))
            for job in JOBS
            if self.numbers[job]
        ]
