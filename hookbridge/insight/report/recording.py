"""`hb.record`: a report of a user's own run, in either loop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookbridge.ground.arguments import writable
from hookbridge.insight.report.account import AccountRecorder, accounts
from hookbridge.insight.report.run_report import Run, RunReport, write_html


@contextlib.contextmanager
def record(
    guests: Any,
    directory: Any,
    *,
    title: str = "A run with hooks and callbacks",
    process: str = "this process",
) -> Iterator[Path]:
    """Record what guests see and cost, and write `report.html` at the end.

        with hb.record(guests, "runs/mine") as page:
            model.fit(x, y, callbacks=hb.as_callbacks(guests))

    The page also has the curves of the event files and CSV logs in the directory. It is
    written also if the run fails.

    Args:
      guests: one hook or callback, or a list of them, as for `as_hooks` and
        `as_callbacks`; before or after they were converted.
      directory: where the run writes.
      title: the title of the page.
      process: the name of this process. The page shows each process that has recorded
        in this directory under another name.

    Yields:
      The path of the page.

    Raises:
      errors.NotAGuestError: an item is neither a hook nor a callback.
      errors.UnwritableError: the directory cannot be written.
    """
    folder = Path(writable(directory, name="directory"))
    recorder, began = AccountRecorder(guests), time.monotonic()
    try:
        yield folder / "report.html"
    finally:
        facts = {"seconds": time.monotonic() - began}
        recorder.account(process, facts).save(folder)
        shown = {name: f"{value:.6g}" for name, value in facts.items()}
        runs = [Run("run", title, folder, accounts(folder), shown)]
        summary = f"It took {facts['seconds']:.1f} seconds."
        write_html(RunReport(title, summary, runs), folder)
