"""When the state of callbacks is saved and restored in a session loop, and from where.

Read `run_state` (what a training run has), `session_states` (one for a graph) and
`savers` (those that it follows).
"""
