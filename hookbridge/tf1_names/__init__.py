"""What TensorFlow 1 had, what a newer TensorFlow lacks of it, and what replaces that.

Reading order: `syntax` (functions that all rooms use), `target` (the public names of a
TensorFlow), `parsing` (without Python's warnings), `installed_names` (what an installed
package lacks), `contrib_names`, `changes` (arguments and methods that libraries
changed), `keras_arguments`, `old_values` (what functions refuse today),
`renamed_arguments`, `removed_in_libraries` (what other libraries removed), then
`outcome`, `private_names`, `old_keras` and `resolution` (what becomes of a name).
The lists are in `data/`.
"""
