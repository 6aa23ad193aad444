"""When the state of callbacks is saved and restored in a session loop, and from where.

Read `keeper`, then `saves`; `loop_state` is what the loop itself keeps, and
`worker_checkpoints` is how a worker finds what the chief has saved.
"""
