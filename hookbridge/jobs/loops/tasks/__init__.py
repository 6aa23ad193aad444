"""One process of a cluster: its job, port, server and signals; and a local cluster.

Reading order: `task_checks`, `ports`, `server`, `signals`; then `local_cluster`,
`local_task`, `output`, `guard`.
"""
