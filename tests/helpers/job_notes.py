"""What a task of a test's cluster notes, for `cluster_processes.Job.events`.

The first argument of each task is the path of its notes; its options follow.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from idle_clock import idle_secs

EVENTS = Path(sys.argv[1] if len(sys.argv) > 1 else "none")
OPTIONS = dict(each.split("=", 1) for each in sys.argv[2:] if "=" in each)


def note(event: str, **facts: Any) -> None:
    """Writes an event, with times by clocks that all processes of a machine share."""
    at = {"at": time.monotonic(), "idle": idle_secs()}
    with EVENTS.open("a") as file:
        record = {"event": event, **at, **facts}
        file.write(json.dumps(record, default=float) + "\n")
