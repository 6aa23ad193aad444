"""What users ask of guests and runs: `explain`, `profile`, `record`, `recorder`.

Reading order: `explanation`; `timings`, `guest_profile`; `report`; `reference`.
"""
