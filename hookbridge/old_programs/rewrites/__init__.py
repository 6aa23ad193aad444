"""The rules of a rewrite, one in each file.

Reading order: `registry`; `v1_imports`, `imports`, `names`; `old_arguments` and
`switches` (what a rename does not mend); `guest_lists`.
"""
