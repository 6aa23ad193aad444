"""Every command of docs/examples.md runs as it is written there."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from typing import Any

import pytest
from commands import ROOT, keras_of_graphs, printed
from fork_server import ForkServer

Outputs = list[subprocess.CompletedProcess[str]]
PAGE = ROOT / "docs" / "examples.md"


def commands() -> dict[str, list[str]]:
    """The commands of each section, in order."""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        blocks = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
        whole = (block.replace("\\\n", "") for block in blocks)
        lines = [line for block in whole for line in block.splitlines()]
        if lines:
            found[section.partition("\n")[0]] = lines
    return found


@pytest.fixture(scope="module")
def run(fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs a command; one that several sections have runs once."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")

    @functools.cache
    def once(line: str) -> subprocess.CompletedProcess[str]:
        program, *words = shlex.split(line)
        start = ["-m", "hookbridge"] if program == "hookbridge" else []
        done = fork_server.run(
            *start, *words, folder=folder, PYTHONPATH=str(ROOT), **keras_of_graphs()
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done

    return once


# The commands of these take long. `make test` shows what they do by test_loops.py, for
# the clusters of Estimators by tests/estimator and tests/loops/towers.
LONG = (
    "A distributed trainer",
    "A `model_fn` with towers and SyncReplicas",
    "Digits from CSV",
    "One file for both loops, without an Estimator",
    "Sequences of different lengths",
    "The hook that feeds the learning rate",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "section",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name in LONG else ())
        for name in sorted(commands())
    ],
)
def test_a_section(section: str, run: Any) -> None:
    _LOOK[section]([run(line) for line in commands()[section]])


def _digits(outputs: Outputs) -> None:
    explained, fit, towers, servers, evaluated, predicted = outputs
    assert "LoggingTensorHook (hook): wrapped" in explained.stdout
    assert "all guests work" in explained.stdout.splitlines()[0]
    assert printed(fit) == printed(towers) == {"global_step": 171}
    assert "tensorboard --logdir runs/digits/fit" in fit.stdout
    assert "[chief 0] global_step=57" in servers.stdout
    assert printed(evaluated)["accuracy"] > 0.95
    assert printed(predicted) == {"examples": 1797}


def _strokes(outputs: Outputs) -> None:
    _, fit, estimator = outputs
    found = printed(fit)
    assert found["global_step"] == 32
    # The page's `--seed` makes both the same in each run; chance is log(10) and 0.1.
    assert found["loss"] < 2.25 and found["accuracy"] > 0.2
    assert printed(estimator) == {"global_step": 16}


def _towers(outputs: Outputs) -> None:
    towers, sync = outputs
    assert printed(towers) == {"global_step": 114}
    (line,) = (x for x in sync.stdout.splitlines() if "[chief 0] global_step=" in x)
    assert int(line.partition("=")[2]) in range(30, 33)


def _trainer(outputs: Outputs) -> None:
    _, cluster, one = outputs
    found, alone = (printed(done) for done in (cluster, one))
    # The last updates of a cluster may come after the chief has asked for the end.
    assert found["global_step"] in range(40, 44) and alone["global_step"] == 40
    for each in (found, alone):
        assert each["loss"] < 2.1  # chance is log(10)
    assert abs(found["loss"] - alone["loss"]) < 0.3


def _both(outputs: Outputs) -> None:
    found = printed(outputs[0])
    assert found["global_step"] == 90 and found["accuracy"] > 0.9


def _rates(outputs: Outputs) -> None:
    for done in outputs:
        assert "step 0: learning rate 0.01000" in done.stdout
        assert "step 40: learning rate 0.00250" in done.stdout


def _sessions(outputs: Outputs) -> None:
    fetches, processing = outputs
    assert fetches.stdout == "plain hook: 40 runs; callback: 20 steps\n"
    first, second = processing.stdout.splitlines()
    assert first.startswith("114 steps; loss ")
    assert second.startswith("of the hidden layer ")


_LOOK = {
    "Digits from CSV": _digits,
    "Sequences of different lengths": _strokes,
    "A `model_fn` with towers and SyncReplicas": _towers,
    "A distributed trainer": _trainer,
    "The hook that feeds the learning rate": _rates,
    "One file for both loops, without an Estimator": _both,
    "Session loops": _sessions,
}
