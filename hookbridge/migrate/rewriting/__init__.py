"""Rewrites one file of Python by rules, without knowing any of them.

Reading order: `results` (what comes out), `rule` (what a rule is), `context` (what a
rule is given), `tree_names`, `imports`, `engine` (one walk over the tree), `todos`,
`source` (a whole text), `files` (all files of a call, planned and written).
"""
