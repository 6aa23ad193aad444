"""A model definition file, trained, evaluated and used for predictions in any loop.

Reading order: `settings`, `user_file`, `definition`, `inputs`; `session_training` with
`graph_model` and `graph_optimizer`; `fit_training` with `keras_model`; `job`, which
chooses between the two; `failures` and `summary`, what a person is told.
"""
