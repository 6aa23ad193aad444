"""One list of guests drives a digits classifier in both loops; a report compares them.

Reading order: `settings`, `run`, `task` (one process), `guests` with
`activity_hook` and `progress_callback`, `model`, `data`, `story` (what a guest has to
see), `report`, `html_report`, `console`.
"""
