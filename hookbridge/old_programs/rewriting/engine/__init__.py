"""Rewrites one module by rules, without knowing any of them.

Reading order: `results` (what comes out), `inserted_lines` and `needed_imports` (the
lines that rewritten code needs), `dotted_text` and `import_text` (new names among the
old comments), `text_changes` (parts of a text that change), `context` (what a rule is
given), `rule` (what a rule is, and which are chosen), `module` (a whole module, walk by
walk).
"""
