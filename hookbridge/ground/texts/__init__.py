"""Texts for people: numbers of things, tables, progress, suggestions.

Reading order: `counted` (numbers of things, as text), `text_table`, `live_lines`,
`nearest_names`.
"""
