"""Hooks driven by `fit`, `evaluate` and `predict` of a model in a v1 graph.

Read in this order: `host` (which models), `run`, `functions`, `monitored`, `session`,
`step`, `names`, `optimizer`, `global_step`, `start`, `hook_variables`, `averages`.
"""
