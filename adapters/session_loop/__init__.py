"""Callbacks driven by a session: epochs, batches, validation, checks, the end.

Reading order: the room `shared`, `training_run`, `evaluations`, then `group` (the
callbacks of one `as_hooks` call). Small things: `last_epoch`, `on_steps`,
`v1_tensorboard`.
"""
