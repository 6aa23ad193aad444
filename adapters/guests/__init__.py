"""What an item is, where it writes, and which process calls it.

Read `kinds`, `roles`, `skipped`, `in_begin`; then `any_flavour`, `foreign`, `paths`,
`outside` and `watchers`. Which events a guest overrides is
`hookbridge.lifecycle.overrides`.
"""
