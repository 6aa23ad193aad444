"""The source of programs, read once: files, names, and which TensorFlow they mean.

`run`, `doctor`, `scan` and `rewrite` all ask here. Nothing is executed and TensorFlow
is not imported.

Reading order: `import_statements` (what is imported, and how it is spelled), `scopes`
(which scope binds a name), `bound_names` (which TensorFlow name an expression means),
`named_uses` (where a module names a library), `starred` (what bare names of starred
imports mean), `conditions` (what conditions about versions come to), `guards` (code
that a program runs only where a name is there), `keras_signs` (which Keras a place
means), `keras2_signs` (what Keras 3 refuses), `old_callbacks` (what callbacks read that
is no longer set), `evidence` (what one file says), `meaning` (what a program says),
`python2`, `ipython_lines`, `notebooks`, `comments`, `arrays` (which values are arrays),
`unequal_rows` (which lists may have such) and `modules` (a file with all of this),
`imported_files` (which file an import means), `gpu_blocks` (what a program does there),
`search_path` (folders that a file adds), `scripts` (whether a file does something),
`names_between` (which names files have from each other), `programs` (which files run
together) with `in_program` (what they say of one), `program_files` (their files, read),
`started` (by its path, or by `-m`), `removed_imports` (what libraries removed of it),
`packages` (what is missing beside TensorFlow), `libraries` (installed packages of
TensorFlow 1), `library_losses` (what installed packages use that NumPy removed).
"""
