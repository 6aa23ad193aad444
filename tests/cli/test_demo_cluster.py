"""The demo with both loops, each in a cluster of processes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from fork_server import ForkServer
from test_demo import GUESTS

from hookbridge.insight.report.account import Account, accounts
from hookbridge.insight.report.run_report import Run
from hookbridge.jobs.demo import report as report_lib
from hookbridge.jobs.demo.settings import LOOPS

STEPS_PER_EPOCH = 22
FLAGS = ("--batch_size=64", "--epochs=2")

# On TF 2.15 a plain installation's demo runs in clusters.
pytestmark = [pytest.mark.slow, pytest.mark.one_tensorflow]


@pytest.fixture(scope="module")
def finished(fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A finished demo: report, progress, directory."""
    directory = tmp_path_factory.mktemp("demo") / "new"
    flags = (*FLAGS, "--format=json", f"--model_dir={directory}")
    legacy: Any = {"TF_USE_LEGACY_KERAS": "1"} if tf.__version__ >= "2.16" else {}
    done = fork_server.run("-m", "hookbridge", "demo", *flags, **legacy)
    # Reversed, because differences from the documented events are printed last.
    assert done.returncode == 0, "\n".join(done.stderr.splitlines()[::-1])
    return json.loads(done.stdout), done.stderr, directory


def late_steps(directory: Path) -> int:
    """How many steps the session may have made since an epoch ended for its chief.

    Those are the last two runs of the chief and the runs of the other worker since they
    began, until it hears of the stop. A run that is interrupted then has no event.
    """
    chief, other = accounts(directory / "session")
    since = _runs(chief, "before_run")[-2:][0]
    return 2 + sum(ended > since for ended in _runs(other, "after_run")) + 1


def _runs(account: Account, event: str) -> list[float]:
    """When the runs of a process began or ended, in Unix time."""
    hook = list(account.guests).index("ActivityHook")
    calls = [call for call in account.calls if (call.guest, call.name) == (hook, event)]
    return [account.started + call.secs for call in calls]


def test_both_clusters_learn(finished: Any) -> None:
    report, progress, directory = finished
    assert report["ok"]
    stops = {name: loop["global_step"] for name, loop in report["loops"].items()}
    assert stops["fit"] % STEPS_PER_EPOCH == 0
    assert stops["session"] % STEPS_PER_EPOCH <= late_steps(directory)
    for loop in report["loops"].values():
        assert loop["accuracy"] >= 0.8
    assert "[worker 0] epoch " in progress
    assert "[chief 0] epoch " in progress


def test_each_guest_s_events_are_told_for_each_process(
    subtests: pytest.Subtests, finished: Any
) -> None:
    report, _, _ = finished
    session = report["loops"]["session"]["processes"]
    fit = report["loops"]["fit"]["processes"]
    assert sorted(session) == ["chief 0", "worker 0"]
    assert sorted(fit) == ["chief 0"]  # Keras calls callbacks only in the coordinator
    for process in (*session.values(), *fit.values()):
        with subtests.test(str(process)):
            kinds = {name: guest["kind"] for name, guest in process["guests"].items()}
            assert kinds == GUESTS
    for process in session.values():
        events = process["guests"]["ActivityHook"]["events"]
        assert events["before_run"] >= events["after_run"] > 0
    steps = report["loops"]["fit"]["global_step"]
    guests = fit["chief 0"]["guests"]
    events = guests["ActivityHook"]["events"]
    assert events["before_run"] == events["after_run"] == steps
    epochs = steps // STEPS_PER_EPOCH
    assert guests["EpochLines"]["events"]["on_epoch_end"] == epochs
    for name in ("StepCounterHook", "CSVLogger", "EarlyStopping"):
        with subtests.test(str(name)):
            assert session["chief 0"]["guests"][name]["events"]
            other = session["worker 0"]["guests"][name]
            place = (other["role"], other["runs_here"], other["events"])
            assert place == ("chief", False, {})


def test_what_is_done_once_is_done_by_the_chief(finished: Any) -> None:
    report, _, directory = finished
    for loop, facts in report["loops"].items():
        rows = list(csv.DictReader((directory / loop / "metrics.csv").open()))
        chief, *_ = accounts(directory / loop)
        assert len(rows) == chief.counts("EpochLines")["on_epoch_end"] > 0
        newest = tf.train.latest_checkpoint(str(directory / loop))
        reader = tf.train.load_checkpoint(newest)
        # In the session loop the other worker may make steps after the chief's hook has
        # saved.
        late = facts["global_step"] - reader.get_tensor("global_step")
        assert 0 <= late <= (late_steps(directory) if loop == "session" else 0)


def test_the_page_shows_what_is_printed(finished: Any, repo_root: Path) -> None:
    """Each shown line is printed, in this order; numbers may differ by run."""
    _, _, folder = finished
    runs = [Run(loop, loop, folder / loop, accounts(folder / loop)) for loop in LOOPS]
    lines = report_lib.as_table(runs, []).splitlines()
    columns = ["session: chief 0", "session: worker 0", "fit: chief 0"]
    assert re.split("  +", lines[0])[-3:] == columns
    assert lines[-1] == "Every guest saw the documented events in every process."
    (row,) = (line for line in lines if line.startswith("CSVLogger ("))
    assert row.split()[-3:] == ["1", "-", "1"]
    page = (repo_root / "docs" / "examples.md").read_text("utf-8")
    shown = page.partition("It prints, shortened:\n\n```text\n")[2].partition("```")[0]
    printed = iter(lines)
    told = [line for line in shown.splitlines() if line != "..."]
    assert len(told) > 8
    for line in told:
        assert any(_masked(line) == _masked(each) for each in printed), line


def _masked(line: str) -> str:
    """A line without numbers other than 1, and without the widths of columns."""
    line = re.sub("-{3,}", "", line)
    words = [re.sub(r"^(?!1$)[\d.]+%?$", "N", word) for word in line.split()]
    return " ".join(words)
