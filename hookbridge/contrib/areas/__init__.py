"""Parts of `tf.contrib` that need code here: old signatures over today's functions.

Reading order: `learn` and `run_config`, `estimators`, `kmeans`, `hparams`, then one
file for each other area: `strategies`, `lookup`, `buckets`, `framework`, `datasets`,
`learn_datasets`, `cells`, `fused_cells`, `linear`, `recurrent_cells`, `conv_cells`,
`projections`, `sequences`, `embeddings`, `vocabularies`, `predictor`, `profiling`,
`opt`, `eager`, `mnist`, and the room `seq2seq`.
"""
