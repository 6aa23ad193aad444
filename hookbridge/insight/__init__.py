"""What users ask of guests and runs: `explain`, `profile`, `record`.

Reading order: `explanation`; `timings`, `guest_profile`; `report`.
"""
