"""The ground floor: versions, checks and small tools that every room may use.

Reading order: `pages`, `extras`, `arguments`, `text_table`, `live_lines`, `names`,
`structures`, `whole_files`, `lazy`; `compat`, all that is private to TensorFlow and
Keras; `patching`; `lifecycle`, what a guest must see; `validation`; `cluster` and
`cluster_checks`, what TF_CONFIG says; `exit_codes`, `exit_threads`.
"""
