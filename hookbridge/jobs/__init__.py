"""Jobs: the training loops, and all that `hookbridge train` and `cluster` need.

Reading order: `loops`, the session loops and clusters; `callbacks`, ready-made guests;
`data`, rows of files; `training`, definition files; `cluster_config`, manifests of
cluster managers; `demo`.
"""
