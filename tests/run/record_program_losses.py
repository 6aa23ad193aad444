"""Records what the programs of `program_table` print, and the files they leave.

Each program runs on the TensorFlow that it was written for. Most programs were never
touched by `tf_upgrade_v2`; they run unchanged, with tf.contrib, on TensorFlow 1.15.5
and Python 3.7:

    python3.7 -m venv tf115
    tf115/bin/pip install tensorflow==1.15.5 protobuf==3.20.3 numpy==1.18.5 "h5py<3"
    PYTHONPATH=tests/helpers tf115/bin/python tests/run/record_program_losses.py

The others are recorded the same way with the Python of TensorFlow 2.15.1. Each call
replaces the rows of all programs of the TensorFlow that runs it, or of those programs
that are named. Nothing of hookbridge is imported.

A program that shuffles a dataset and reads it several times has to set
`reshuffle_each_iteration=False`. Otherwise, with the same seed, TensorFlow 1.15 and
TensorFlow 2 shuffle all rounds, also the first one, in different orders.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from left_files import files_of
from program_table import (
    PROGRAMS,
    RECORDED,
    REPLICA,
    TOUCHED,
    UNTOUCHED,
    Program,
    losses_by_step,
)


def run(
    program: Program, *more: str, folder: str | None = None
) -> subprocess.Popen[str]:
    """Starts a program in a folder of its own, with its output in pipes."""
    return subprocess.Popen(
        [sys.executable, *program.command(), *more],
        cwd=folder or tempfile.mkdtemp(),
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )


def results(program: Program) -> dict[str, Any]:
    """What a program that runs alone prints, and its files."""
    with tempfile.TemporaryDirectory() as folder:
        process = run(program, folder=folder)
        out, err = process.communicate()
        assert process.returncode == 0, err
        return {"told": program.told(out, err), "files": files_of(Path(folder))}


def replica_losses() -> list[tuple[str, str]]:
    """The losses of two synchronous workers with a parameter server."""
    with socket.socket() as one, socket.socket() as two, socket.socket() as three:
        for probe in (one, two, three):
            probe.bind(("localhost", 0))
        hosts = [f"localhost:{p.getsockname()[1]}" for p in (one, two, three)]
    flags = [f"--ps_hosts={hosts[0]}", f"--worker_hosts={hosts[1]},{hosts[2]}"]
    server = run(REPLICA, *flags, "--job_name=ps", "--task_index=0")
    workers = [
        run(REPLICA, *flags, "--job_name=worker", f"--task_index={i}") for i in (0, 1)
    ]
    printed = ""
    for worker in workers:
        out, err = worker.communicate()
        assert worker.returncode == 0, err
        printed += out
    server.kill()  # a server never ends by itself
    server.communicate()
    return losses_by_step(printed)


def main() -> None:
    """Records the programs of this TensorFlow."""
    import tensorflow as tf

    version = str(tf.__version__)
    recorded: dict[str, Any] = {}
    if RECORDED.exists():
        recorded = json.loads(RECORDED.read_text())
    mine = [name for name in PROGRAMS if version.startswith(PROGRAMS[name].native)]
    assert mine, f"TensorFlow {version}; expected {UNTOUCHED} or {TOUCHED}"
    asked = sys.argv[1:] or [*mine, "mnist_replica"]
    rows = {name: results(PROGRAMS[name]) for name in mine if name in asked}
    if version.startswith(UNTOUCHED) and "mnist_replica" in asked:
        rows["mnist_replica"] = {"losses": replica_losses()}
    for name, found in rows.items():
        print(name, *(f"{len(values)} {kind}" for kind, values in found.items()))
        recorded[name] = {
            "tensorflow": version,
            "python": platform.python_version(),
            **found,
        }
    lines = [f'"{name}": {json.dumps(recorded[name])}' for name in sorted(recorded)]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
