"""The demo from start to end: both loops, in clusters or in this process."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

from hookbridge.ground.texts.counted import counted
from hookbridge.insight.report.account import accounts
from hookbridge.insight.report.run_report import Run, write_html
from hookbridge.jobs.demo import report
from hookbridge.jobs.demo.settings import LOOPS, DemoSettings

TITLES = {
    "session": ("MonitoredTrainingSession", ", SyncReplicasOptimizer"),
    "fit": ("Model.fit", ", ParameterServerStrategy"),
}


def run_demo(
    settings: DemoSettings,
    train: Callable[[Sequence[str]], int],
    *,
    as_json: bool = False,
    open_page: bool = False,
) -> int:
    """Train in both loops, report, and check the events that the guests saw.

    Args:
      settings: the flags of the demo.
      train: runs `hookbridge train` with some flags and returns its exit code.
      as_json: whether stdout gets the results as JSON alone.
      open_page: whether the report opens in a browser.

    Returns:
      The exit code: that of the first training that failed, or 1 if the events differ.
    """
    # Otherwise each process logs its hardware, its connections and their end.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    directory = Path(settings.model_dir)
    runs = []
    # What the trainings print is progress; stdout may be for the JSON alone.
    results = sys.stdout
    with contextlib.redirect_stdout(sys.stderr if as_json else results):
        print(*settings.missing(), sep="\n", end="\n" if settings.missing() else "")
        for loop in LOOPS:
            trainers = settings.trainers(loop)
            name, in_cluster = TITLES[loop]
            title = name + (in_cluster if trainers else "")
            workers = counted(trainers, "worker") if trainers else "no workers"
            print(f"{title}: {workers}", flush=True)
            shutil.rmtree(directory / loop, ignore_errors=True)
            code = train(settings.flags(loop))
            if code:
                print(f"{title}: the training ended with exit code {code}")
                return code
            runs.append(Run(loop, title, directory / loop, accounts(directory / loop)))
        differences = report.differences(runs, settings)
        text = report.as_json(runs, settings, differences)
        (directory / "report.json").write_text(text + "\n", encoding="utf-8")
        shown = text if as_json else report.as_table(runs, differences)
        print(shown, file=results)
        page = write_html(report.as_page(runs, settings, differences), directory)
        print(f"The report: {directory / 'report.json'}, and to look at: {page}")
        if open_page:
            webbrowser.open(page.resolve().as_uri())
        if as_json and differences:
            print(*differences, sep="\n")
    return 1 if differences else 0
