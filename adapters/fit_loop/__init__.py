"""`fit`, `evaluate` and `predict` of an eager Keras model as a host of hooks.

Read in this order: `native_step_maker` with the host, `fit_graph` and `fit_session`;
`step_source` (what a step has to offer), `model_step` (that of a model, and how the run
gets called) and `own_step` (the same in a loop of the user's own); `step_function`
(the step, able to return its tensors) with `tapped_function`, `taps`, `batches`,
`first_replica`, `spies` and `eager_step`.
"""
