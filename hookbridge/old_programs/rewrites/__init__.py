"""The rules of a rewrite, one in each file.

Reading order: `v1_imports`, `imports`, `names`, then what a rename does not mend, and
`guest_lists`.
"""
