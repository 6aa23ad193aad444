"""`fit`, `evaluate` and `predict` of a model in a v1 graph as a host of hooks.

Read in this order: `host`, `functions`, `session`, `step`, `names`, `global_step` and
`hook_variables`.
"""
