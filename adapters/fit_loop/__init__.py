"""`fit`, `evaluate` and `predict` of an eager Keras model as a host of hooks.

Read in this order: `host`, `installation` (how it gets called) and `own_step` (the same
in a loop of the user's own), `step_function` (the model's step, able to return step
tensors) with `tapped_function`, `taps`, `own_replica`, `spies` and `eager_step`.
"""
