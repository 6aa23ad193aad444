"""Reference runs: what a training did, step by step, and where a port first differs.

Reading order: `array_norms`, `recording_files` (what a recording is) with
`recording_writer`, `recorder` (`hb.recorder`) with `graph_step`,
`graph_gradients`, `graph_states`, `fit_step` and, for what known mistakes would give,
`graph_variations` with `variation`, `mistakes_in_values`, `mistakes_in_nodes` and
`label_smoothing`; `replay` (`hb.replay`), `port` (`hb.recording`) with
`port_arguments`, `torch_modules` and `keras_steps`; `variable_matching`, `measures`,
`differences`; `cause`, `causes`, and of each layer `causes_before_training` with
`rearrangements`; `first_step` with `causes_in_loss`, `causes_in_gradients`,
`variations`; `update_rules`, `recorded_clipping`, `courses`, `known_rule`,
`causes_of_updates`, `adam_epsilon`, `schedules`; `causes_of_state`; `comparison`
(`hb.compare`), `pages`.
"""
