"""Which names a module binds, and what they mean.

Reading order: `import_statements` (what is imported, and how it is spelled), `scopes`
(which scope binds a name), `bound_names` (which TensorFlow name an expression means),
`named_uses` (where a module names a library), `starred` (what bare names of starred
imports mean), `conditions` (what conditions about versions come to), `guards` (code
that a program runs only where a name is there).
"""
