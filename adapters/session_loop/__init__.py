"""Callbacks driven by a session: epochs, batches, validation, checks, the end.

Read `config`, `group`, `run`, `training`, `training_epochs`, then `epochs`,
`epoch_logs` and `evaluation`.
Refusals: `checks`, `monitors`. Validation: `validations`, `validation_run`. Small
things: `delivery`, `borrowed`, `last_step`, `on_steps`, `values`, `v1_tensorboard`.
"""
