"""The source of programs, read once: files, names, and which TensorFlow they mean.

`run`, `doctor`, `scan` and `rewrite` all ask here. Nothing is executed and TensorFlow
is not imported.

Reading order: `sources` (files and `notebooks`), `names` (which TensorFlow name an
expression means), `guards` (code that a program runs only where a name is there),
`modules` (a source with its names), `imports` (which file an import means), `evidence`
(what one file says), `meaning` (what follows for a program), `programs` (which files
run together), `libraries` (installed packages).
"""
