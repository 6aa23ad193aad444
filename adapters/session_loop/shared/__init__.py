"""What the training and the evaluations of a session share.

Reading order: `options`, `callback_run`, `audience` with `guest_errors` and
`batch_times`, `borrowed` (callbacks of a training that an evaluation borrows),
`epoch_logs` with `values`.
Refusals: `checks`, `monitors`.
"""
