"""The rules of a rewrite, one in each file.

Reading order: `v1_imports`, `starred_imports`, `dead_imports`, `dead_names`, then what
a rename does not mend: `old_arguments`, `switches`; and `guest_lists`.
"""
