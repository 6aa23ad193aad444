"""Hooks driven by `fit`, `evaluate` and `predict` of a model in a v1 graph.

Read in this order: `host` (which models), `run`, `functions`, `session`, `step`,
`names`, `global_step`, `start`.
"""
