"""The tests of this folder run their jobs beside each other."""

from side_by_side import results as results
