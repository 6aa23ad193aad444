"""Rewrites one file of Python by rules, without knowing any of them.

Reading order: `results` (what comes out), `rule` (what a rule is), `context` (what a
rule is given, and the changes of the text), `imports` (the lines that rewritten code
needs), `source` (a whole text), `files` (all files of a call, planned and written).
"""
