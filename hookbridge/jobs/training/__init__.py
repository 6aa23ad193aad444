"""A model definition file, trained, evaluated and used for predictions in any loop.

Reading order: `training_settings`; `file_text`, `user_file`, `definition` with
`definition_logs`; `job_inputs`, `keras_model`; `job_process`; `session_training` with
`graph_model` and `graph_optimizer`; `fit_training`; `job`, which chooses between them;
`summary`, the messages to the user.
"""
