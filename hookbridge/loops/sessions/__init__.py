"""Monitored sessions whose steps run through callables."""
