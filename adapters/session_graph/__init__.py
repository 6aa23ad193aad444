"""What a graph tells of its steps, loss, metrics, learning rate and variables.

Read `graph_ops`, `steps` with `step_movers`, `step_counter`; then `log_sources`,
`eval_log_sources`, `estimator_stack`, `fetches` with `data_pulls`; then
`graph_optimizers`, `learning_rate`, `session_variables` and `saved`.
"""
