"""The `hookbridge` command.

Reading order: `command`, `version`, `flag_table`, then one module for each sub-command:
`demo`, `explain`, `migrate`, `run`, `doctor`, `cluster`, `train` (with
`estimator_cluster` and `estimator_job`), `evaluate` and `predict`; `job_flags` has the
flags that the last three share.
"""

from __future__ import annotations

from hookbridge.cli.command import COMMANDS, main

__all__ = ["COMMANDS", "main"]
