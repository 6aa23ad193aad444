"""The model that a callback sees in a session, over the session's variables.

Read `build` and `model`; then `weights` with `mirrors` and `watched`; `optimizer` with
`rates` and `overridden_rates`; `clone`, and `files` with `weight_files`, `keras_layout`
and `backup`; `counters` last.
"""
