"""Starts `hookbridge run` as a process of its own.

`launch` starts an interpreter, for tests of how a process begins and ends.
`launch_fork` is quicker: it forks a process without TensorFlow. A whole program does
the same in such a fork.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from put_aside import OTHER_WORLD

from hookbridge.ground.compat import LAST_WITH_KERAS2, installed_tf_version
from hookbridge.old_programs.run import statements

IS_215 = installed_tf_version() <= LAST_WITH_KERAS2
ON_NEWEST = pytest.mark.skipif(IS_215, reason="the same on each TensorFlow")
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")
# How a program of TensorFlow 1 begins that gets its cluster by flags.
CLUSTER_FLAGS = """
import tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "")
flags.DEFINE_string("worker_hosts", "", "")
flags.DEFINE_string("job_name", "", "")
flags.DEFINE_integer("task_index", 0, "")
F = flags.FLAGS
"""


def launch(
    *words: str, cwd: Path = PROGRAMS, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `python -m hookbridge run WORDS` and waits for its end."""
    return subprocess.run(
        [sys.executable, "-m", "hookbridge", "run", *words],
        cwd=cwd,
        input=stdin,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


def launch_fork(
    server: ForkServer, *words: str, cwd: Path = PROGRAMS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `hookbridge run WORDS` in a fork of a process without TensorFlow."""
    done = server.run("-m", "hookbridge", "run", *words, folder=cwd, **environment)
    assert OTHER_WORLD not in done.stderr, done.stderr
    return done


def output_of(
    server: ForkServer, folder: Path, program: str, *, file: str = "old.py"
) -> str:
    """Runs a program, which succeeds, as a file of a folder; returns its output."""
    (folder / file).write_text(program)
    done = launch_fork(server, file, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def as_own_file(text: str, /, **names: Any) -> dict[str, Any]:
    """Runs a text as a file of a program, here and now; returns its names."""
    space = {"__name__": "own_file", **names}
    tree = statements.as_run(ast.parse(text), targets_tf1=None)
    exec(compile(tree, "own_file.py", "exec", dont_inherit=True), space)
    return space
