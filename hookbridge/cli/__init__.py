"""The `hookbridge` command.

Reading order: `command`, `streams`, `parser`, then one module for each
sub-command: `demo`, `explain`, `migrate_scan`, `migrate_rewrite`, `run`, `doctor`,
`cluster`, `train`, `evaluate`, `predict`, `docs` and `completion`; `job_flags` has the
flags that `train`, `evaluate` and `predict` share, `estimator_cluster` their cluster.
"""

from __future__ import annotations

from hookbridge.cli.command import COMMANDS, main

__all__ = ["COMMANDS", "main"]
