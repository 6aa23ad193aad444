"""Which files are one program, what they mean together, and what they need.

Reading order: `meaning` (what a program means by TensorFlow); `imported_files` (which
file an import means), `libraries` (installed packages of TensorFlow 1), `search_path`
(folders that a file adds), `scripts` (whether a file does something), `gpu_blocks`
(what a program does there), `names_between` (which names files have from each other),
`programs` (which files run together) with `in_program` (what they say of one),
`program_files` (their files, read), `started` (by its path, or by `-m`);
`removed_imports` (what libraries removed of it), `packages` (what is missing beside
TensorFlow), `uses_in_packages` (what installed packages use that NumPy removed).
"""
