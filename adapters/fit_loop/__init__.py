"""`fit`, `evaluate` and `predict` of an eager Keras model as a host of hooks.

Read in this order: `fit_host`, `native_step`, `fit_graph` and `fit_session`;
`installation` (how the run gets called); `step_source` (the step of a model) and
`own_step` (the same in a loop of the user's own); `step_function` (the step, able to
return its tensors) with `tapped_function`, `taps`, `batches`, `own_replica`, `spies`
and `eager_step`.
"""
