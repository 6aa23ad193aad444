"""All scenarios by name."""

from __future__ import annotations

import scenarios_failures
import scenarios_feeds
import scenarios_hooks
import scenarios_lifecycle
import scenarios_recovery
import scenarios_runs
from trace_loop import SCENARIOS

__all__ = [
    "SCENARIOS",
    "scenarios_failures",
    "scenarios_feeds",
    "scenarios_hooks",
    "scenarios_lifecycle",
    "scenarios_recovery",
    "scenarios_runs",
]
