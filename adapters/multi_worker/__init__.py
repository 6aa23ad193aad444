"""Hooks and callbacks in a `fit` of several processes (`MultiWorkerMirroredStrategy`).

Read in this order: `worker_host` (the host; hooks in one of the processes),
`end_together` (the last callback of each process, which asks whether all end here) and
`agreement` (how the processes agree on that).
"""
