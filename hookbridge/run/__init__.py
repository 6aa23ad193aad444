"""Runs a TF1 program, unedited, on the installed TensorFlow.

Reading order: `launch` and `located` (what to run), `reading` and `evidence` (what its
source says), `world` (what is decided and entered), `own_modules`, `statements` and
`views` (what `import tensorflow` means in its files), `late_distutils`, then
`execute`, `tracebacks`, `children` and `spawned` (how it runs). `doctor` says what
would happen. The room `contrib` has what stands behind `tf.contrib`, and `joining`
lets guests join.
"""
