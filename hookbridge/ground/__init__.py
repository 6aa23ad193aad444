"""The ground floor: versions, checks and small tools that every room may use.

Reading order: `pages`, `installed`, `extras`, `arguments`, `text_table`, `live_lines`,
`names`, `structures`, `whole_files`, `package_files`, `lazy`, `running_mean`; `compat`,
all that is private to TensorFlow and Keras; `protocols`, what the bridge asks of their
objects; `patching`; `lifecycle`, what a guest must see; `validation`; `cluster` and
`cluster_checks`, what TF_CONFIG says; `exit_codes`, `exit_threads`.
"""
