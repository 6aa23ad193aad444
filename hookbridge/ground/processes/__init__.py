"""What a process is in its cluster, and how it ends.

Reading order: `cluster_checks` and `tf_config` (what TF_CONFIG says), `signals`,
`exit_codes`, `exit_threads`.
"""
