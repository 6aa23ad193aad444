"""Callbacks driven by a session: epochs, batches, validation, checks, the end.

Read `config`, `group`, `run`, `training`, `training_epochs`, `epoch_logs`,
`validations` and `evaluation`. Refusals: `checks`, `monitors`. Small things:
`borrowed`, `last_epoch`, `on_steps`, `values`, `v1_tensorboard`.
"""
