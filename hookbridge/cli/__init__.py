"""The `hookbridge` command.

Reading order: `command`, `version`, `flag_table`, then one module for each sub-command:
`demo`, `explain`, `migrate`, `run`, `doctor`, `cluster`, `train` (with
`estimator_cluster` and `estimator_job`), `evaluate`, `predict` and `docs`; `job_flags`
has the flags that `train`, `evaluate` and `predict` share.
"""

from __future__ import annotations

from hookbridge.cli.command import COMMANDS, main

__all__ = ["COMMANDS", "main"]
