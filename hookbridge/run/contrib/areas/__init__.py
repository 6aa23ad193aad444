"""Parts of `tf.contrib` that take code: old signatures over what lives today.

Reading order: `learn` and `run_config`, `estimators`, `hparams`, then one file for each
other area: `strategies`, `lookup`, `datasets`, `cells`, `fused_cells`, `sequences`,
`predictor`, `profiling`, `mnist`.
"""
