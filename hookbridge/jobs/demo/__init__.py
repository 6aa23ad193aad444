"""One definition file, trained in both loops; a report compares what its guests saw.

Reading order: `digits_in_both_loops` (the definition file, from `examples/`),
`settings`, `run`, `story` (what a guest has to see), `report`.
"""
