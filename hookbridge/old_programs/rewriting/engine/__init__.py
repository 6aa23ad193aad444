"""Rewrites one module by rules, without knowing any of them.

Reading order: `results` (what comes out), `needed_imports` (the lines that rewritten
code needs), `context` (what a rule is given, and the changes of the text), `rule` (what
a rule is, and which are chosen), `module` (a whole module, walk by walk).
"""
