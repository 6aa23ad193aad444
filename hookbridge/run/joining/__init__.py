"""Guests from outside, in every training that a program starts.

Reading order: `guest_file` (who joins), `party` (the record of one run), then where
they join: `estimators`, `sessions`, `fits`; `passed_by` (trainings that no guest
joins), `servers` (the task of this process in a cluster), `install`; `sites` reads
from the source where they would join.
"""
