"""What is known about a guest: its kind, what it fetches and writes, who calls it.

Read `kinds` and `guest_record`, which every other room reads; then `keras_rows`, what
Keras's own callbacks are, `roles`, `copies`, `skipped`, `fetched`, `foreign`, `bare`,
`in_begin`, `any_flavour`, `paths`, `written`, `watchers` and `keys_of_logs`.
`hookbridge.ground.lifecycle.overrides` tells which events a guest overrides.
"""
