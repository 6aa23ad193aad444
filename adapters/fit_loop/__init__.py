"""Hooks driven by `fit`, `evaluate` and `predict`."""
