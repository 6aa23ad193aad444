"""The demo in one process, and what it does when a guest misses an event."""

from __future__ import annotations

import csv
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from fork_server import ForkServer

from hookbridge.insight.report.account import accounts, finite
from hookbridge.insight.report.run_report import Run
from hookbridge.jobs.demo import report
from hookbridge.jobs.demo.demo_run import TITLES
from hookbridge.jobs.demo.settings import LOOPS, MARKER, DemoSettings

GUESTS = {
    "ReduceLROnPlateau": "callback",
    "EarlyStopping": "callback",
    "ModelCheckpoint": "callback",
    "CSVLogger": "callback",
    "EpochLines": "callback",
    "TensorBoard": "callback",
    "LoggingTensorHook": "hook",
    "StepCounterHook": "hook",
    "ActivityHook": "hook",
}
STEPS_PER_EPOCH = 45
EPOCHS = 3
HERE = "this process"


def demo(
    server: ForkServer, *flags: str, **environment: Any
) -> subprocess.CompletedProcess[str]:
    return server.run("-m", "hookbridge", "demo", "--local", *flags, **environment)


@pytest.fixture(scope="module")
def short_run(fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A demo of a few epochs: its result, standard error and directory."""
    directory = tmp_path_factory.mktemp("demo") / "new"
    browser = directory.with_name("browser")
    browser.write_text(f'#!/bin/sh\necho "$1" > "{browser}.opened"\n')
    browser.chmod(0o755)
    flags = ("--format=json", "--open", f"--epochs={EPOCHS}")
    folder = f"--model_dir={directory}"
    done = demo(fork_server, *flags, folder, BROWSER=str(browser))
    assert done.returncode == 0, done.stderr + done.stdout
    opened = browser.with_name("browser.opened").read_text().strip()
    assert opened == (directory / "report.html").as_uri()
    return json.loads(done.stdout), done.stderr, directory


def _history(directory: Path) -> list[dict[str, float]]:
    with (directory / "metrics.csv").open() as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_default_demo_stops_at_the_same_step_in_both_loops(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    flags = ("--format=json", "--no-progress", f"--model_dir={tmp_path / 'new'}")
    done = demo(fork_server, *flags)
    assert done.returncode == 0, done.stderr + done.stdout
    loops = json.loads(done.stdout)["loops"]
    steps = loops["session"]["global_step"]
    assert steps == loops["fit"]["global_step"] < 30 * STEPS_PER_EPOCH
    for loop in loops.values():
        assert loop["accuracy"] >= 0.95


@pytest.mark.slow
@pytest.mark.both_tensorflows
def test_both_loops_learn_the_same(short_run: Any) -> None:
    result, progress, directory = short_run
    loops = result["loops"]
    steps = loops["session"]["global_step"]
    assert steps == loops["fit"]["global_step"] == EPOCHS * STEPS_PER_EPOCH
    # Same data, weights and guests: the same run, up to rounding.
    ours, theirs = (_history(directory / loop) for loop in LOOPS)
    assert len(ours) == len(theirs) == steps / STEPS_PER_EPOCH
    for one, two in zip(ours, theirs, strict=True):
        for key in ("loss", "accuracy", "val_loss", "val_accuracy"):
            assert one[key] == pytest.approx(two[key], rel=0.02, abs=0.01), key
    for loop in loops.values():
        assert loop["accuracy"] >= 0.85
    assert "LoggingTensorHook: " in progress
    assert progress.count("epoch   1  ") == 2
    # The progress line of each loop, which `--no_progress` turns off.
    assert progress.count(f"epoch 1/{EPOCHS}  step 1/{EPOCHS * STEPS_PER_EPOCH}  ") == 2
    assert "units of the hidden layer were never active" in progress


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_the_report_counts_every_event_in_both_loops(short_run: Any) -> None:
    result, _, directory = short_run
    assert result["ok"] is True
    # A candidate is 2.22.0rc0 to pip, and 2.22.0-rc0 to itself.
    assert result["versions"]["tensorflow"] == tf.__version__.replace("-rc", "rc")
    for name, loop in result["loops"].items():
        steps, guests = loop["global_step"], loop["processes"][HERE]["guests"]
        assert {key: guest["kind"] for key, guest in guests.items()} == GUESTS
        assert guests["ActivityHook"]["events"] == {
            "begin": 1,
            "before_run": steps,
            "after_run": steps,
            "end": 1,
        }
        epochs = guests["EpochLines"]["events"]["on_epoch_end"]
        assert epochs * STEPS_PER_EPOCH == steps
        folders = {path.name for path in (directory / name).iterdir()}
        assert {"metrics.csv", "step_counter", "tensorboard"} <= folders
        assert {"best.weights.h5", f"model.ckpt-{steps:.0f}.index"} <= folders
    assert json.loads((directory / "report.json").read_text()) == result
    assert (directory / "report.html").read_text().count("<polyline") >= 10


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_a_guest_that_misses_an_event_is_named(short_run: Any) -> None:
    _, _, directory = short_run
    settings = DemoSettings(num_trainers=0, epochs=EPOCHS, model_dir=str(directory))
    runs = [
        Run(loop, TITLES[loop][0], directory / loop, accounts(directory / loop))
        for loop in LOOPS
    ]
    assert report.differences(runs, settings) == []
    assert report.as_table(runs, []).endswith("events in every process.")
    (account,) = runs[1].accounts
    place = list(account.guests).index("EarlyStopping")
    ends = [e for e in account.calls if e[:2] == (place, "on_epoch_end")]
    calls = [call for call in account.calls if call is not ends[1]]
    runs[1] = replace(runs[1], accounts=[replace(account, calls=calls)])
    found = report.differences(runs, settings)
    line = f"received {len(ends) - 1} times, expected {len(ends)}"
    assert f"EarlyStopping in fit, {HERE}: on_epoch_end: {line}" in found
    table = report.as_table(runs, found)
    assert table.endswith("A guest did not see the documented events.")
    assert json.loads(report.as_json(runs, settings, found))["ok"] is False
    assert f"on_epoch_end: {line}" in report.as_page(runs, settings, found).summary
    # A worker that another one's stop reaches within an epoch does not end it.
    begins = [end._replace(name="on_epoch_begin") for end in (*ends, ends[-1])]
    runs[1] = replace(
        runs[1], accounts=[replace(account, calls=[*account.calls, *begins])]
    )
    assert "An `on_epoch_begin` without `on_epoch_end`: " in report.as_table(runs, [])


def test_a_report_is_json_whatever_the_losses_are() -> None:
    values = {"loss": float("nan"), "history": [{"val_loss": float("inf")}, 1.5, 2]}
    assert finite(values) == {"loss": None, "history": [{"val_loss": None}, 1.5, 2]}


MISSING = """
import importlib.util
import sys

find_spec = importlib.util.find_spec
absent = ("tensorboard", "tf_keras", "tensorflow_estimator")


def without(name, package=None):
    return None if name.partition(".")[0] in absent else find_spec(name, package)


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


importlib.util.find_spec = without
sys.meta_path.insert(0, Absent())
from hookbridge.cli import main

sys.exit(main(sys.argv[1:]))
"""


def plain_demo(server: ForkServer, folder: Path, *flags: str) -> str:
    """What a demo prints without the extras: what is missing first, then the table."""
    program = folder / "plain.py"
    program.write_text(MISSING)
    flags = (*flags, f"--model_dir={folder}/run")
    done = server.run(str(program), "demo", *flags)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Every guest saw the documented events in every process." in done.stdout
    assert "examples/s" not in done.stdout + done.stderr
    assert done.stdout.startswith(
        "TensorBoard is not installed: the `TensorBoard` callback"
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_second_demo_replaces_the_first_and_needs_no_extra(
    subtests: pytest.Subtests, fork_server: ForkServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    for loop in LOOPS:
        (run / loop).mkdir(parents=True)
        (run / loop / "model.ckpt-7.index").touch()
    (run / MARKER).touch()
    flags = ("--epochs=2", "--batch_size=100", "--no-progress", "--num_towers=4")
    assert "No Keras 2: " not in plain_demo(fork_server, tmp_path, "--local", *flags)
    assert len(_history(run / "session")) == 2
    for loop in LOOPS:
        with subtests.test(str(loop)):
            names = sorted(path.name for path in (run / loop).glob("*.index"))
            assert names == ["model.ckpt-0.index", "model.ckpt-28.index"]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_plain_installation_runs_the_clusters(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    flags = ("--epochs=1", "--batch_size=64", "--no-progress")
    lines = plain_demo(fork_server, tmp_path, *flags).splitlines()
    assert lines[1].startswith("No Keras 2: ") == (tf.__version__ >= "2.16")
