"""One run of a native loop with hooks, whichever loop it is.

Read in this order: `hooked_run` (begins, steps, stops, ends and fails the hooks),
`host` (the parts of a native loop: `fit_loop`, `graph_fit`, `parameter_server`),
`monitored` (what TensorFlow's `MonitoredSession` gets) and `modes`; then `fit_states`
(the callbacks' state beside checkpoints) with `list_ends`, `fit_epoch`,
`fit_loop_state`, `model_values` and `fit_backups`, `call_watch` (hooks that nobody
calls) and `refusals`.
"""
