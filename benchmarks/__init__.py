"""One file for each question; `python -m benchmarks.NAME` answers it."""

import os

# Before TensorFlow is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
