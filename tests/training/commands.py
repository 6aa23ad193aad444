"""Runs the commands of model definition files in forked processes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from fork_server import ForkServer

from hookbridge.ground import compat

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "data" / "digits.csv"


def keras_of_graphs() -> dict[str, str]:
    """The environment in which `tf.keras` is Keras 2, as the command sets it."""
    return {"TF_USE_LEGACY_KERAS": "1"} if compat.tf_version() >= (2, 16) else {}


def hookbridge(
    server: ForkServer, *arguments: str, folder: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `hookbridge ARGUMENTS` to its end."""
    variables = {**keras_of_graphs(), **environment}
    return server.run("-m", "hookbridge", *arguments, folder=folder, **variables)


def weights(folder: Path, names: tuple[str, ...] = ()) -> dict[str, Any]:
    """The variables of the newest checkpoint: all, or those with the given names."""
    reader = tf.train.load_checkpoint(str(folder))
    wanted = names or tuple(reader.get_variable_to_shape_map())
    return {name: np.asarray(reader.get_tensor(name)) for name in wanted}


def printed(done: subprocess.CompletedProcess[str]) -> dict[str, float]:
    """The `name=value` pairs of the last line that has any."""
    lines = [line for line in done.stdout.splitlines() if "=" in line]
    assert lines, done.stdout + done.stderr
    pairs = [word.partition("=") for word in lines[-1].split() if "=" in word]
    return {name: float(value) for name, _, value in pairs}
