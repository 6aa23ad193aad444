"""The programs of this folder and what they leave behind: losses, steps and files.

This file also runs on Python 3.7, where the results of TensorFlow 1.15 are recorded.
"""

from __future__ import annotations

import re
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
RECORDED = Path(__file__).resolve().parents[1] / "data" / "migrated_programs.json"
# Program -> the TensorFlow that runs it unchanged.
NATIVE = {
    "monitored_session": "2.15",
    "custom_hooks": "1.15",
    "train_and_eval": "2.15",
    "sync_replicas": "2.15",
    "feeding_hook": "1.15",
    "early_stopping": "2.15",
    "listeners": "2.15",
    "keras_estimator": "2.15",
    "contrib": "1.15",
    "half_upgraded": "2.15",
}
# The lines that a program prints; TensorFlow's log is in another stream.
_TELLS = re.compile(
    r"^((?:step|loss|w|x|own|listener|train|eval|seen|predicted)\b[^\n]*)$", re.M
)
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def told(output: str) -> list[str]:
    """The lines in which a program prints its losses and steps."""
    return [line for line in _TELLS.findall(output) if _NUMBER.search(line)]


def numbers(line: str) -> list[float]:
    """The numbers of a line."""
    return [float(number) for number in _NUMBER.findall(line)]
