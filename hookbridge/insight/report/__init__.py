"""A finished run as one HTML file that needs no other file and no network.

Reading order: `recording` (`hb.record`), `account` (what the guests of a process saw),
`run_report` (the whole page and its tables), `scalars` (the curves that a run wrote),
`charts`, `story` (the order of events, with each repetition told once),
`event_pictures`, `page` (tables, and the template `page.html`).
"""
