"""One graph replicated over devices with shared variables."""
