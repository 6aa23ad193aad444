"""Hooks and batch-level callbacks in a `fit` under `ParameterServerStrategy`.

Steps are scheduled ahead; their events are delivered late and in order. Read in this
order: `run`, `delivery` (which event comes when), `scheduled`, `step` and `values` (a
step that is scheduled, and what comes back), `session`, `stops`, `preemption`; then
`callback` (a callback that plain Keras refuses here), `refusals`, `cached_reads` and
`exit`.
"""
