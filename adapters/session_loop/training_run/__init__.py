"""A training in a session: its steps become the batches and epochs of callbacks.

Reading order: `training`, with its parts. Where it is: `phases`. What it reads:
`step_reader` and `run_arguments`. What it tells: `training_epochs` with `epoch_clock`.
Who ends it: `training_stop`. What it warns of: `outside`.
"""
