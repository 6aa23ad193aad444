"""One run of a native loop with hooks, whichever loop it is.

Read in this order: `hooked_run` (begins, steps, stops, ends and fails the hooks),
`host` (the parts of a native loop: `fit_loop`, `graph_fit`, `parameter_server`),
`model_loops` (who has a model's loops) with `modes`, `monitored` (what TensorFlow's
`MonitoredSession` gets); then `fit_states` (when the callbacks' state is saved) with
`list_ends`, `fit_epoch`, `epoch_means`, `fit_rate` and `model_values`, and `fit_saves`
(what is on the disk); `call_watch` (hooks that nobody calls) and `refusals`.
"""
