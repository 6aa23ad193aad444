"""The source of programs, read once: files, names, and which TensorFlow they mean.

`run`, `doctor`, `scan` and `rewrite` all ask here. Nothing is executed and TensorFlow
is not imported.

Reading order: `bound_names` (which TensorFlow name an expression means),
`conditions` (what conditions about versions come to), `guards` (code that a program
runs only where a name is there), `evidence` (what one file says),
`notebooks` and `modules` (a file with all of this), `imports` (which file an import
means), `search_path` (folders that a file adds), `programs` (which files run together,
and what follows), `packages` (what is missing beside TensorFlow), `libraries`
(installed packages).
"""
