"""Runs a TF1 program, unedited, on the installed TensorFlow.

Reading order: `located` (what to run), `world` (which TensorFlow the program gets),
`own_program` (its files and its world), `own_modules`, `by_path`, `statements`,
`absent`, `tensorflow_lookup`, `stars` and `views` (what an import means in its files),
`converted` (the same in functions of AutoGraph), then `execute`, `tracebacks`,
`children` and `spawned` (how it runs), `notebook_cells`, `ipython` and `live_notebook`
(notebooks). The room `restored` has what was removed and a program finds again, the
room `joining` adds guests from a file to the program's trainings.
"""
