"""The demo from start to end."""

from __future__ import annotations

import shutil
from pathlib import Path

from hookbridge.demo import report as report_lib
from hookbridge.demo.console import hook_lines, make_emit
from hookbridge.demo.guests import GuestList
from hookbridge.demo.loop_run import TITLES, LoopRun
from hookbridge.demo.loops import DemoRunner
from hookbridge.demo.settings import DemoSettings
from hookbridge.demo.strict_json import to_json
from hookbridge.demo.timeline_svg import timeline_svg
from hookbridge.lifecycle import Host


def run_demo(settings: DemoSettings, *, as_json: bool = False) -> int:
    """Trains in both loops, reports, and judges.

    Args:
      settings: checked already.
      as_json: print the report as JSON on stdout; progress goes to stderr then.

    Returns:
      0, or 1 if a guest saw something else than the documented events.
    """
    emit = make_emit(to_stderr=as_json)
    directory = Path(settings.model_dir)
    for host in TITLES:
        shutil.rmtree(directory / host, ignore_errors=True)
    guests = GuestList(emit)
    runner = DemoRunner(settings, guests)
    runs: dict[Host, LoopRun] = {}
    with hook_lines(emit):
        emit(f"MonitoredTrainingSession with {settings.num_towers} towers")
        runs["session"] = runner.run_session()
        emit("\nModel.fit")
        runs["fit"] = runner.run_fit()
    report = report_lib.as_dict(settings, runs)
    picture = directory / "timeline.svg"
    report["timeline"] = str(picture)
    text = to_json(report)
    (directory / "report.json").write_text(text + "\n", encoding="utf-8")
    picture.write_text(timeline_svg(runs), encoding="utf-8")
    emit("")
    if as_json:
        print(text)
    else:
        print(report_lib.as_table(report))
    emit(f"The timelines: {picture}\nThe report:    {directory / 'report.json'}")
    return 0 if report["ok"] else 1
