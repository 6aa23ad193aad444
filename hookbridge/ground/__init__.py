"""The ground floor: versions, checks and small tools that every room may use.

Reading order: `installed`, `extras`, `arguments`, `counted` (numbers of things, as
text), `text_table`, `live_lines`, `nearest_names`, `structures`, `whole_files`,
`package_files`, `lazy`, `lazy_modules` (modules that make their names when they are
asked for), `sys_modules` and `module_names` (what a module has, by its text),
`running_mean`, `single_number`, `groups`, `batch_parts`, `walks` (what others lead to),
`memory` (what is remembered of objects of others); `compat`, all that is private to
TensorFlow and Keras; `protocols`, what the bridge asks of their objects; `collected`,
what a program has put into a graph's collections; `patching`; `lifecycle`, what a guest
must see; `validation`; `tf_config` and `cluster_checks`, what TF_CONFIG says;
`step_errors`, `exit_codes`, `exit_threads`, `signals`.
"""
