"""A job's machines, from a `config.yaml` or numbers, as input of an orchestrator.

Reading order: `job_config`, `job_order`, then `kubernetes`, `slurm`.
"""
