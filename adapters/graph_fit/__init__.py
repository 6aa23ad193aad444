"""`fit`, `evaluate` and `predict` of a model in a v1 graph as a host of hooks.

Read in this order: `host`, `functions`, `keras_session`, `step_call`, `graph_names`,
`graph_collections` and `hook_variables`.
"""
