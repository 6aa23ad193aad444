"""Evaluations of a session: those between epochs, and those that stand alone.

Reading order: `validations`, `validation_run`, `evaluation_run`.
"""
