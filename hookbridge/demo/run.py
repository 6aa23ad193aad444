"""The demo from start to end: both loops, in clusters or in this process."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from hookbridge.cluster import ClusterConfig
from hookbridge.demo import report as report_lib
from hookbridge.demo.console import Emit, make_emit
from hookbridge.demo.html_report import html_report
from hookbridge.demo.settings import DemoSettings
from hookbridge.lifecycle import HOSTS, Host
from hookbridge.loops.tasks.local_cluster import LocalCluster
from hookbridge.report.browser import open_report
from hookbridge.report.run_report import write_html


def run_demo(
    settings: DemoSettings, *, as_json: bool = False, open_page: bool = False
) -> int:
    """Trains in both loops, reports, and checks the events that the guests saw.

    Args:
      settings: the settings, already checked.
      as_json: print the report as JSON on stdout; progress goes to stderr then.
      open_page: open `report.html` in the browser.

    Returns:
      0; 1 if a guest saw other events than the documented ones; or the exit code of a
      process that failed.

    Raises:
      errors.MissingExtraError: the clusters need Keras 2 and there is none.
    """
    if settings.num_workers:
        from hookbridge.demo.guests import keras_with_parameter_servers

        keras_with_parameter_servers()
        # Otherwise each process logs its hardware, its connections and their end.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    emit = make_emit(to_stderr=as_json)
    directory = Path(settings.model_dir)
    accounts: dict[Host, list[report_lib.Account]] = {}
    for loop in HOSTS:
        title = report_lib.title(loop, settings)
        emit(f"{title}: {settings.num_workers or 'no'} workers")
        shutil.rmtree(directory / loop, ignore_errors=True)
        (directory / loop).mkdir(parents=True)
        # What the processes print is progress; stdout may be for the JSON alone.
        with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
            code = _train(loop, settings, emit)
        if code:
            emit(f"{title}: a process ended with exit code {code}")
            return code
        files = sorted((directory / loop).glob("*.json"))
        accounts[loop] = [json.loads(file.read_text("utf-8")) for file in files]
    report = report_lib.as_dict(settings, accounts)
    text = report_lib.to_json(report)
    (directory / "report.json").write_text(text + "\n", encoding="utf-8")
    print(text if as_json else report_lib.as_table(report))
    page = write_html(html_report(report), directory)
    emit(f"The report: {directory / 'report.json'}, and to look at: {page}")
    if open_page:
        emit(open_report(page))
    if as_json:
        for line in report_lib.differences(report):
            emit(line)
    return 0 if report["ok"] else 1


def _train(loop: Host, settings: DemoSettings, emit: Emit) -> int:
    """Runs one loop; returns the exit code of the first process that failed, or 0."""
    if not settings.num_workers:
        from hookbridge.demo.task import DemoTask

        DemoTask(loop, settings, ClusterConfig(), emit).run()
        return 0
    # In `fit` a separate process, the chief, drives the workers.
    cluster = LocalCluster(
        num_workers=settings.num_workers, num_ps=1, chief=loop == "fit"
    )
    task = [sys.executable, "-m", "hookbridge.demo.task", loop]
    return cluster.run([*task, json.dumps(asdict(settings))])
