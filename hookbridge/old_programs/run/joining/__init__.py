"""Guests from outside, in every training that a program starts.

Reading order: `guest_file` (who joins), `joiner` (the record of one run), then where
they join: `estimator_calls`, `sessions`, `plain_steps`, `fits`; `servers` (the task of
this process in a cluster) and `group_stop` (its tasks end together).
"""
