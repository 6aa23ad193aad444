"""The session that a hook sees under `fit`, over the variables of a Keras model."""
