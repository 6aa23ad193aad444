"""What a graph tells of its steps, loss, metrics, learning rate and variables.

Read `ops`, `steps` with `movers`, `step_counter`; then `logs`, `eval_logs`,
`estimator_stack`, `fetches` with `data_pulls`; then `optimizers`,
`learning_rate`, `variables` and `saved`.
"""
