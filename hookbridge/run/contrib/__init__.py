"""What stands behind `tf.contrib` today, for the files of a program that is run.

Reading order: `table` (every name's source), `namespace` (the modules that a program
sees), `gone` (names without a source), then what has code of its own: `learn`,
`run_config`, `hparams`, `estimators`, `strategies`, `lookup`, `datasets`, `cells`,
`fused_cells`, `sequences`, `predictor`, `profiling`, `mnist`.
"""
