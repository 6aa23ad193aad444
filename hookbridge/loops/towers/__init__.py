"""One graph replicated over devices, with shared variables.

Reading order: `replicate_model_fn`, `build`, `batches`, `variables`,
`graph_collections`, `updates`, `deferred_updates`, `averaged_updates`, `merged_specs`;
then `spec`, `inputs`, `evaluation`, `devices`.
"""
