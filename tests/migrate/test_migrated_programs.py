"""Rewritten programs do on the newest TensorFlow what the originals did on their own.

`record_programs.py` has recorded the programs of `programs/`;
`tests/run/record_program_losses.py` has recorded those of `tests/run`.
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
from typing import Any, NamedTuple

import program_table
import pytest
import tensorflow as tf
from fork_server import ForkServer
from left_files import files_of
from migrated import NATIVE, PROGRAMS, RECORDED, numbers, told

from hookbridge import migrate
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


class Ran(NamedTuple):
    """A rewritten program that has ended."""

    code: int
    output: str
    told: list[str]
    files: list[str]
    rewritten: migrate.Rewritten


def run(name: str, folder: Path, server: ForkServer, **options: Any) -> Ran:
    """Rewrites a program and runs it in a folder of its own."""
    folder.mkdir()
    done = migrate.rewrite((PROGRAMS / f"{name}.py").read_text("utf-8"), **options)
    program = folder.with_name(f"{folder.name}_program.py")
    program.write_text(done.source, "utf-8")
    ended = server.run(str(program), folder=folder, **ENVIRONMENT)
    output = ended.stdout + ended.stderr
    return Ran(ended.returncode, output, told(ended.stdout), files_of(folder), done)


# The rewrite removes the Estimators of these programs.
AT_HAND = ("keras_at_hand", "keras_both")
# These programs are also rewritten with `--native`.
NATIVELY = ("pure_hooks", "custom_hooks")


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Iterator[dict[str, Future[Ran]]]:
    """The runs of all programs, a few at a time."""
    folder = tmp_path_factory.mktemp("programs")
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = {
            name: pool.submit(run, name, folder / name, fork_server) for name in NATIVE
        }
        for name in NATIVELY:
            place = folder / f"{name}_native"
            found[f"{name} native"] = pool.submit(
                run, name, place, fork_server, native=True, add_guests=True
            )
        yield found


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return found


def assert_tells_the_same(
    ran: Ran, expected: dict[str, Any], more_files: bool = False
) -> None:
    assert ran.code == 0, ran.output[-3000:]
    was = expected["told"]
    assert len(ran.told) == len(was), (ran.told, was)
    for now, before in zip(ran.told, was, strict=True):
        pairs = zip(numbers(now), numbers(before), strict=True)
        assert all(
            math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) for a, b in pairs
        ), (now, before)
    # With `more_files`, state files of callbacks may stand beside the checkpoints.
    assert ran.files == expected["files"] or more_files
    assert set(ran.files) >= set(expected["files"])


def distinct(lines: list[str]) -> list[str]:
    """The first losses, each once."""
    return list(dict.fromkeys(lines))[:4]


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", sorted({*NATIVE} - {*AT_HAND, "early_stopping"}))
def test_losses_steps_and_files_are_those_of_the_original(
    name: str, runs: dict[str, Future[Ran]], recorded: dict[str, Any]
) -> None:
    ran = runs[name].result()
    assert not ran.rewritten.todos
    if name == "sync_replicas":
        # TensorFlow may read a loss before or after the update.
        ran = ran._replace(told=distinct(ran.told))
        recorded = {name: {**recorded[name], "told": distinct(recorded[name]["told"])}}
    assert_tells_the_same(ran, recorded[name])


def test_early_stopping_stops_where_the_original_does(
    runs: dict[str, Future[Ran]], recorded: dict[str, Any]
) -> None:
    ran = runs["early_stopping"].result()
    assert ran.code == 0, ran.output[-3000:]
    (now,), (was,) = map(numbers, ran.told), map(numbers, _told(recorded))
    # TensorFlow's hook may read the step before or after the update of its run.
    assert abs(now[0] - was[0]) <= 1
    assert now[1] == 2 - 2 ** (1 - now[0]) == pytest.approx(was[1], abs=0.07)


def _told(recorded: dict[str, Any]) -> list[str]:
    told_then: list[str] = recorded["early_stopping"]["told"]
    return told_then


@pytest.mark.parametrize("name", ["pure_hooks", "custom_hooks"])
def test_natively_too(
    name: str, runs: dict[str, Future[Ran]], recorded: dict[str, Any]
) -> None:
    ran = runs[f"{name} native"].result()
    assert_tells_the_same(ran, recorded[name], more_files=True)
    # Guests can be added, because `as_hooks` stands where the hooks were.
    assert "as_hooks(" in ran.rewritten.source
    is_pure = name == "pure_hooks"
    assert ("keras.callbacks.Callback" in ran.rewritten.source) is is_pure


@pytest.mark.parametrize("name", AT_HAND)
def test_a_keras_model_at_hand_trains_in_fit(
    name: str, runs: dict[str, Future[Ran]], recorded: dict[str, Any]
) -> None:
    ran = runs[name].result()
    assert ran.code == 0, ran.output[-3000:]
    assert "model_to_estimator" not in ran.rewritten.source
    assert ran.told == recorded[name]["told"]
    (loss,) = map(float, recorded[name]["evaluated"])
    assert f"loss: {loss:.4f}" in ran.output or f"loss: {loss:.4e}" in ran.output


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of `tests/run`, rewritten in place in a copy of their folder."""
    folder = tmp_path_factory.mktemp("moved") / "programs"
    shutil.copytree(program_table.PROGRAMS_DIR, folder)
    mains = [p.file.partition(":")[0] for p in program_table.PROGRAMS.values()]
    own = {folder / main.partition("/")[0] for main in mains}
    for done in files.rewrite_files(sorted(own)):
        assert isinstance(done, files.FileRewrite), done
        # Supervisor runs unchanged; its TODO only says that it calls no hooks.
        assert {todo.code for todo in done.result.todos} <= {"SUPERVISOR"}
        if done.result.changed:
            files.write(done)
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
        path = f"{ROOT}:{program.python_path()}".rstrip(":")
        (folder / name).mkdir()
        done = fork_server.run(
            *(word.replace(old, str(moved)) for word in program.command()),
            folder=folder / name,
            PYTHONPATH=path.replace(old, str(moved)),
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
