"""One definition file, trained in both loops; a report compares what its guests saw.

Reading order: `settings`, `demo_run`, `demo_story` (what a guest has to see), `report`.
The definition file is `examples/digits_in_both_loops.py`, which a wheel has here.
"""
