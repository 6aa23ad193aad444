"""The rules that rewrite names and calls of TensorFlow, one in each file.

Reading order: `imports`, then the names (`estimator_names`, `hook_names`, `v1_names`,
`contrib_names`, `carried_contrib`, `private_names`), then what a rename does not mend.
"""
