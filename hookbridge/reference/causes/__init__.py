"""Which mistake in a port would explain the first difference.

Reading order: `cause`, `ranked_causes`, then the causes of each layer.
`causes_before_training` with `rearrangements`; `first_step` with `causes_in_loss`,
`causes_in_gradients` and `variations`; `causes_of_updates` with `update_rules`,
`recorded_clipping`, `courses`, `known_rule`, `adam_epsilon` and `schedules`;
`causes_of_state`.
"""
