"""Hooks and batch-level callbacks in a `fit` under `ParameterServerStrategy`.

Steps are scheduled ahead; their events are delivered late and in order. Read in this
order: `cluster_step_maker` (with the host), `event_queue` (which event comes when),
`scheduler`, `scheduled_step`, `steps_in_flight` and `step_values` (a scheduled step and
its results), `cluster_session`; then `deferred_callback` (for callbacks that plain
Keras refuses here), `ps_refusals`, `keras_calls` and `exit`.
"""
