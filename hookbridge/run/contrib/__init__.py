"""What stands behind `tf.contrib` today, for the files of a program that is run.

Reading order: `namespace` (the modules that a program sees; the source of each name is
in `hookbridge/migrate/contrib_names.py`), `gone` (the names that have none) and
`mended_slim`.
The room `areas` has what needs code of its own.
"""
