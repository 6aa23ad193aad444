"""What was removed, and a program that is run finds again.

Reading order: `asking` (what is written into a file of the program), `reading` (what
answers), `removed_names` (of modules), `removed_arguments`, `removed_randomness` (of
`random`), `old_libraries` (which other files ask); then what is changed for the whole
process: `keras_constructors`, `fit_calls` with `validation_data` and `callback_params`
(of callbacks), and `old_meanings` (what calls of TensorFlow meant).
"""
