"""Hooks and batch-level callbacks in a `fit` under `ParameterServerStrategy`.

Steps are scheduled ahead; their events are delivered late and in order. Read in this
order: `host`, `delivery` (which event comes when), `scheduled`, `step` and `values` (a
scheduled step and its results), `session`; then `callback` (for callbacks that plain
Keras refuses here), `refusals`, `keras_calls` and `exit`.
"""
