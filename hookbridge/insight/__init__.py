"""What users ask of guests and runs: `explain`, `profile`, `record`, `recorder`.

Reading order: `explanation`; `timings`, `guest_profile`; `value_copies`,
`background_saves`; `checkpoint_entries`, `checkpoints`; `report`; `reference`.
"""
