"""The source of programs, read once: files, names, and which TensorFlow they mean.

`run`, `doctor`, `scan` and `rewrite` all read by it. Nothing is executed and TensorFlow
is not imported.

Reading order: the rooms `names`, `one_file`, `whole_programs`.
"""
