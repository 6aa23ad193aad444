"""Monitored sessions whose steps run through callables.

Reading order: `callable_session`, `fed_callable`.
"""
