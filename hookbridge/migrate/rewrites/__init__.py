"""The rules that rewrite names and calls of TensorFlow, one in each file.

Reading order: `v1_imports`, `imports`, `names`, then what a rename does not mend.
"""
