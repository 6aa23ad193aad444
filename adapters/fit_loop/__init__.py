"""`fit`, `evaluate` and `predict` of an eager Keras model as a host of hooks.

Read in this order: `host`, `placement` (how it gets called) and `own_place` (the same
in a loop of the user's own), `step` (the model's step, able to return step tensors)
with `tapped_function`, `taps`, `batches`, `spies` and `eager_step`.
"""
