"""When the state of callbacks is saved and restored in a session loop, and from where.

Read `run_state` (what a training run has), `keeper` (one for a graph) and `saves`;
`loop_state` is what the loop itself keeps.
"""
