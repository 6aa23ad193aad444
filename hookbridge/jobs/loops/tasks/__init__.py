"""One process of a cluster: its job, port and server; and a local cluster.

Reading order: `task_checks`, `ports`, `server`; then `local_cluster`,
`local_task`, `output`, `guard`.
"""
