"""Whole TF1 programs run unedited, with the losses of the TensorFlow they are for.

`record_program_losses.py` has recorded these losses without hookbridge.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from launching import ROOT, launch_fork
from program_table import PROGRAMS, RECORDED, Program, losses_of

Done = subprocess.CompletedProcess[str]
RELATIVE = 1e-5
AT_A_TIME = 2


def run(program: Program, folder: Path, server: ForkServer) -> Done:
    folder.mkdir()
    return launch_fork(
        server,
        *program.command(),
        cwd=folder,
        PYTHONPATH=str(ROOT),
        CUDA_VISIBLE_DEVICES="",
        TF_CPP_MIN_LOG_LEVEL="3",
    )


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    launcher: ForkServer,
) -> Iterator[dict[str, Future[Done]]]:
    """The runs of the programs of the chosen tests, a few at a time."""
    folder = tmp_path_factory.mktemp("programs")
    asked = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == Path(__file__)
        and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {
            name: pool.submit(run, PROGRAMS[name], folder / name, launcher)
            for name in dict.fromkeys(asked)
        }


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def same(printed: str, expected: str) -> bool:
    """Whether two numbers are equal, to the precision of the printed digits."""
    places = len(expected.partition(".")[2])
    return math.isclose(
        float(printed), float(expected), rel_tol=RELATIVE, abs_tol=1.01 * 10**-places
    )


# On TensorFlow 2.15 far fewer names are missing; these programs need all of them.
ON_215 = ("iris", "mnist_towers", "queue_fed", "experiment", "slim_nets")


def names() -> list[str]:
    """The programs that run on this TensorFlow; found without importing it."""
    is_215 = importlib.metadata.version("tensorflow").startswith("2.15.")
    return [name for name in PROGRAMS if name in ON_215 or not is_215]


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_program_has_the_losses_of_its_tensorflow(
    name: str, runs: dict[str, Future[Done]], recorded: dict[str, Any]
) -> None:
    done = runs[name].result()
    assert done.returncode == 0, done.stderr[-3000:]
    found = losses_of(done.stdout, done.stderr)
    expected = recorded[name]["losses"]
    assert [key for key, _ in found] == [key for key, _ in expected]
    differing = [
        (key, printed, loss)
        for (key, printed), (_, loss) in zip(found, expected, strict=True)
        if not same(printed, loss)
    ]
    assert not differing
