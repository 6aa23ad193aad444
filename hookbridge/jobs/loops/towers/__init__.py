"""One graph replicated over devices, with shared variables.

Reading order: `replicate_model_fn`, `inputs`, `build`, `shared`, `averaged_updates`,
`spec`; then `evaluation`, `devices`.
"""
