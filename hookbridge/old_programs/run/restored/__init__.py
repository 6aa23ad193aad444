"""What was removed, and a program that is run finds again.

Reading order: `lookup_calls` (what is written into a file of the program),
`library_lookup` (what these calls do), `restored_names` (of modules),
`restored_arguments`, `restored_randomness` (of `random`), `old_libraries` (which other
files get such calls); then what is changed for the whole process:
`keras_constructors`, `fit_calls` with `validation_data` and `callback_params` (of
callbacks), and `old_meanings` (what calls of TensorFlow meant).
"""
