"""Runs a TF1 program, unedited, on the installed TensorFlow.

Reading order: `located` (what to run), `world` (which TensorFlow the program gets), `own_modules`, `statements`,
`converted` and `views` (what `import tensorflow` means in its files), `lost_names`, then
`execute`, `tracebacks`, `children` and `spawned` (how it runs). `doctor` lists what
TensorFlow lacks. The room `joining` adds guests from a file to the program's trainings.

What a program's source says is read in `hookbridge.old_programs.reading`.
"""
