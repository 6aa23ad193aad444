"""What stands behind `tf.contrib` today, for the files of a program that is run.

Reading order: `table` (every name's source), `living` (the names that have one),
`namespace` (the modules that a program sees) and `gone` (the names that have none).
The room `areas` has what needs code of its own.
"""
