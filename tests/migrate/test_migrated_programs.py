"""Rewritten programs do on the newest TensorFlow what the originals did on their own.

`tests/run/record_program_losses.py` has recorded them. The programs of `programs/` are
in `test_programs_in_parts`.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import program_table
import pytest
import tensorflow as tf
from fork_server import ForkServer
from left_files import files_of

from hookbridge.migrate.rewriting import files

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
if tf.__version__.startswith("2.15."):
    # Programs rewritten for a newer TensorFlow ask for tf_keras. This turns it off: the
    # Keras of 2.15 is Keras 2 itself.
    ENVIRONMENT["TF_USE_LEGACY_KERAS"] = "0"
AT_A_TIME = 2
# The last printed digits differ: TF 1.15 and 2.21 add numbers in different orders.
RELATIVE, ABSOLUTE = 1e-4, 1e-6


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of `tests/run`, rewritten in place in a copy of their folder."""
    folder = tmp_path_factory.mktemp("moved") / "programs"
    shutil.copytree(program_table.PROGRAMS_DIR, folder)
    mains = [program.file for program in program_table.PROGRAMS.values()]
    own = {folder / main.partition("/")[0] for main in mains}
    for done in files.rewrite_files(sorted(own)):
        assert isinstance(done, files.FileRewrite), done
        assert not done.result.todos
        if done.result.changed:
            list(files.write_all([done]))
    return folder


def without_shards(names: list[str]) -> list[str]:
    """Names of files; all data parts of a checkpoint have the same name.

    TensorFlow 1.15 wrote some checkpoints in more parts than TensorFlow 2 does.
    """
    return sorted({re.sub(r"\.data-\d{5}-of-\d{5}$", ".data", name) for name in names})


class WholeRan(NamedTuple):
    """A whole program that has ended."""

    done: subprocess.CompletedProcess[str]
    files: list[str]


@pytest.fixture(scope="module")
def whole_runs(
    moved: Path, tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Iterator[dict[str, Future[WholeRan]]]:
    folder = tmp_path_factory.mktemp("whole")

    def run_whole(name: str) -> WholeRan:
        program = program_table.PROGRAMS[name]
        old = str(program_table.PROGRAMS_DIR)
        (folder / name).mkdir()
        done = fork_server.run(
            *(word.replace(old, str(moved)) for word in program.command()),
            folder=folder / name,
            PYTHONPATH=str(ROOT),
            **ENVIRONMENT,
        )
        return WholeRan(done, without_shards(files_of(folder / name)))

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {name: pool.submit(run_whole, name) for name in program_table.PROGRAMS}


@pytest.mark.parametrize("name", program_table.PROGRAMS)
def test_whole_programs_run_without_a_launcher(
    name: str, whole_runs: dict[str, Future[WholeRan]]
) -> None:
    done, left = whole_runs[name].result()
    assert done.returncode == 0, done.stderr[-3000:]
    recorded = json.loads(program_table.RECORDED.read_text("utf-8"))[name]
    was = [(key, float(loss)) for key, loss in recorded["losses"]]
    now = [
        (key, float(loss))
        for key, loss in program_table.losses_of(done.stdout, done.stderr)
    ]
    assert [key for key, _ in now] == [key for key, _ in was]
    for (key, loss), (_, before) in zip(now, was, strict=True):
        assert math.isclose(loss, before, rel_tol=RELATIVE, abs_tol=ABSOLUTE), key
    # This compares the steps too: the names of checkpoints have them.
    assert left == without_shards(recorded["files"])
