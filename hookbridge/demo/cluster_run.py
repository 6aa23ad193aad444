"""The distributed demo: both loops, each as a cluster of real processes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from hookbridge.demo import cluster_report
from hookbridge.demo.cluster_guests import keras_with_parameter_servers
from hookbridge.demo.console import make_emit
from hookbridge.demo.settings import DemoSettings
from hookbridge.demo.strict_json import to_json
from hookbridge.loops.tasks.local_cluster import LocalCluster


class Loop(NamedTuple):
    """One of the two loops.

    Attributes:
      name: `"session"` or `"fit"`.
      title: what it is called in the table.
      has_coordinator: whether a process of its own drives the workers; without one
        the first worker is the chief.
    """

    name: str
    title: str
    has_coordinator: bool


LOOPS = (
    Loop("session", "MonitoredTrainingSession, SyncReplicasOptimizer", False),
    Loop("fit", "Model.fit, ParameterServerStrategy", True),
)


def run_demo(settings: DemoSettings, *, as_json: bool = False) -> int:
    """Trains in both clusters, reports, and judges.

    Args:
      settings: checked already.
      as_json: print the report as JSON on stdout; progress goes to stderr then.

    Returns:
      0; 1 if a guest saw something else than the documented events; or the exit code
      of a process that failed.

    Raises:
      errors.MissingExtraError: there is no Keras 2.
    """
    keras_with_parameter_servers()
    # Each process would report on its hardware, its connections and their end.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    emit = make_emit(to_stderr=as_json)
    directory = Path(settings.model_dir)
    runs: dict[str, list[dict[str, Any]]] = {}
    for loop in LOOPS:
        emit(f"{loop.title}: {settings.num_workers} workers, 1 server")
        shutil.rmtree(directory / loop.name, ignore_errors=True)
        (directory / loop.name).mkdir(parents=True)
        # The lines of the processes are progress.
        with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
            code = _cluster(loop, settings).run(_command(loop, settings))
        if code:
            emit(f"{loop.title}: a process ended with exit code {code}")
            return code
        files = sorted((directory / loop.name).glob("*.json"))
        runs[loop.name] = [json.loads(file.read_text("utf-8")) for file in files]
    titles = {loop.name: loop.title for loop in LOOPS}
    report = cluster_report.as_dict(settings, titles, runs)
    text = to_json(report)
    (directory / "report.json").write_text(text + "\n", encoding="utf-8")
    print(text if as_json else cluster_report.as_table(report))
    emit(f"The report: {directory / 'report.json'}")
    if as_json:
        for line in cluster_report.differences(report):
            emit(line)
    return 0 if report["ok"] else 1


def _cluster(loop: Loop, settings: DemoSettings) -> LocalCluster:
    return LocalCluster(
        num_workers=settings.num_workers, num_ps=1, chief=loop.has_coordinator
    )


def _command(loop: Loop, settings: DemoSettings) -> list[str]:
    task = [sys.executable, "-m", "hookbridge.demo.cluster_task"]
    return [*task, loop.name, json.dumps(asdict(settings))]
