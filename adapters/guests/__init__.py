"""What kind a guest is, where it writes, and which processes call it.

Read `kinds`, `roles`, `skipped`, `in_begin`; then `any_flavour`, `foreign`, `paths`,
`outside` and `watchers`. `hookbridge.lifecycle.overrides` tells which events a guest
overrides.
"""
