"""A job's machines, from a `config.yaml` or numbers, as input of an orchestrator.

Reading order: `limited_yaml`, `job_config`, `job_order`, then `kubernetes`,
`slurm`.
"""
