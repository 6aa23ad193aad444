"""One file of a program, read and parsed, and what it says.

Reading order: `python2`, `ipython_lines`, `notebooks`, `comments`; `keras_signs` (which
Keras a place means), `keras2_signs` (what Keras 3 refuses), `old_callbacks` (what
callbacks read that is no longer set), `evidence` (what a file says about its
TensorFlow); `arrays` (which values are arrays), `unequal_rows` (which lists may have
such); `modules` (a file with all of this).
"""
