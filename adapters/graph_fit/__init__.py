"""`fit`, `evaluate` and `predict` of a model in a v1 graph as a host of hooks.

Read in this order: `function_step_maker` (with the host), `functions` and `step_call`,
`keras_session`, `keras_graph` with `graph_names`, `graph_collections`, `hook_variables`
and `garbage`.
"""
