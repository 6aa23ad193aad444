"""The model that a callback sees in a session, over the session's variables.

Read `model` and `link` with `eager_classes`; then `weights` with `mirrors`, `mirror`
and `watched`; `optimizer` with `lent_optimizer`; `rates` with `rate` and
`rate_checks`; `clone`, `model_files` with `weight_files` and `backup`, and `counters`.
"""
