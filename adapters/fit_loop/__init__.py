"""Hooks driven by `fit`, `evaluate` and `predict`.

Read in this order: `run` (one loop with hooks: Keras calls it for each step),
`hosting` (how it gets called) with `modes` and `inner_loops`, `monitored` (what
TensorFlow's `MonitoredSession` gets), `step` (the model's step, able to return step
tensors) with `tapped_function`, `taps`, `likely`, `spies`, `step_feeds`,
`keras_function` and `eager_step`; then `states` (the callbacks' state beside
checkpoints) and `refusals`.
"""
