"""Hooks and callbacks in a `fit` of several processes (`MultiWorkerMirroredStrategy`).

Read in this order: `host` (hooks in one of the processes), `callback` (the last
callback of each process, which asks whether all end here), `agreement` (how the
processes agree on that) and `board` (the notes that they leave for each other).
"""
