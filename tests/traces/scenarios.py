"""All scenarios by name."""

import scenarios_failures as scenarios_failures
import scenarios_feeds as scenarios_feeds
import scenarios_hooks as scenarios_hooks
import scenarios_lifecycle as scenarios_lifecycle
import scenarios_runs as scenarios_runs
from trace_loop import SCENARIOS as SCENARIOS
