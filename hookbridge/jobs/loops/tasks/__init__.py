"""One process of a cluster: its job, port, server and signals; and a local cluster.

Reading order: `jobs`, `ports`, `server`, `signals`; then `local_cluster`, `local_task`,
`output`, `guard`.
"""
