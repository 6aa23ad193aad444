"""What is gone, and a program that is run finds again.

Reading order: `lost_names` (names of modules and of classes), `lost_methods` (of
built-in types), `lost_arguments`, `keras_constructors`, `lost_randomness` (of
`random`), `lost_pictures`, `validation_data` (of callbacks), and `old_meanings` (what
calls of TensorFlow meant).
"""
