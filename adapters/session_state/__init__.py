"""When the state of callbacks is saved and restored in a session loop, and from where.

Read `keeper` (its `RunState` is what a training run has) and `saves`; `loop_state` is
what the loop itself keeps.
"""
