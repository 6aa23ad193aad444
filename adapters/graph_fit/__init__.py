"""`fit`, `evaluate` and `predict` of a model in a v1 graph as a host of hooks.

Read in this order: `refusals` (which models), `host`, `functions`, `session`,
`step`, `names`, `optimizer`, `global_step` and `hook_variables`.
"""
