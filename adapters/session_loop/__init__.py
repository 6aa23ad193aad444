"""Callbacks driven by a session: epochs, batches, validation, checks, the end.

Read `options`, `group`, `callback_run`, `audience` with `guest_errors`, and `training`
with its parts. Where it is: `phases`. What it reads: `step_reader` and `run_arguments`.
What it tells: `training_epochs` with `epoch_clock` and `epoch_logs`. Who ends it:
`training_stop`. Then `validation_run` with `validations`, and `evaluation_run`.
Refusals: `checks`, `monitors`. Small things: `batch_times`, `borrowed`, `last_epoch`,
`on_steps`, `outside`, `values`, `v1_tensorboard`.
"""
