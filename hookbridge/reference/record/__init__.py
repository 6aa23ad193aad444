"""Records a training in either loop, and what its first step would give with mistakes.

Reading order: `recorder` (`hb.recorder`); `fit_step`; `graph_step` with
`graph_gradients` and `graph_states`; `graph_variations` with `variation`,
`mistakes_in_values`, `mistakes_in_nodes` and `label_smoothing`.
"""
