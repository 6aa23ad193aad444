"""The rules that rewrite hooks, callbacks and the places that take them.

Reading order: `kinds` (what an expression is), `places` (where guests go), then one
rule in each file: `guest_lists`, `keras_fit`, `added_guests`, and with `--native`
`native_classes` (with `hook_methods`).
"""
