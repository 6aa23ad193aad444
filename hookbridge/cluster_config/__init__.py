"""The `config.yaml` of an AI-Platform-style job, as a local cluster or a TFJob.

Reading order: `job_config`, `machines`, `tfjob` with `tfjob_schema`.
"""
