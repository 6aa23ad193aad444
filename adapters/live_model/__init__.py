"""The model that a callback sees in a session, over the session's variables.

Read `model` and `link`; then `weights` with `mirrors`, `mirror` and `watched`;
`optimizer` with `rates` and `rate`; `clone`, and `files` with `weight_files`,
`keras_layout` and `backup`; `eager_classes` and `counters` last.
"""
