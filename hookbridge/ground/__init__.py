"""The ground floor: versions, checks and small tools that every room may use.

Reading order: the rooms `texts` and `imports`; `arguments`, `structures`,
`whole_files`, `running_mean`, `single_number`, `groups`, `batch_parts`, `walks` (what
others lead to), `memory` (what is remembered of objects of others); `compat`, all that
is private to TensorFlow and Keras; `protocols`, what the bridge asks of their objects;
`collected`, what a program has put into a graph's collections; `patching`; `lifecycle`,
what a guest must see; `validation`; `step_errors`; the room `processes`.
"""
