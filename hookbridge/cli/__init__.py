"""The `hookbridge` command.

Reading order: `command`, `streams`, `parser`, then the sub-commands: `demo`, `explain`,
`migrate_scan`, `migrate_rewrite`, `run`, `doctor`, `record`, `compare`, `cluster`,
`jobs` (`train`, `evaluate` and `predict`) with `job_flags` and `job_run`, and
`docs`.
"""

from __future__ import annotations

from hookbridge.cli.command import COMMANDS, main

__all__ = ["COMMANDS", "main"]
