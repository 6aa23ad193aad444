"""Callbacks driven by a session: epochs, batches, validation, checks, the end."""
