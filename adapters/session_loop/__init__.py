"""Callbacks driven by a session: epochs, batches, validation, checks, the end.

Read `options`, `group`, `callback_run` and `training` with its parts `step_reader`,
`training_epochs` with `epoch_clock` and `epoch_logs`, `training_stop` and `fed_rates`;
then `validation_run` with `validations`, and `evaluation_run`. Refusals: `checks`,
`monitors`. Small things: `batch_times`, `borrowed`, `last_epoch`, `on_steps`, `values`,
`v1_tensorboard`.
"""
