"""Lines of TensorFlow that a reader of several tasks' output need not see."""

from __future__ import annotations

import re

# What every process says when it imports TensorFlow.
_START_UP = re.compile(
    r"oneDNN custom operations|cudart_stub|cpu_feature_guard|cuda_executor|"
    r"All log messages before absl::InitializeLog|Unable to register cu|"
    r"rebuild TensorFlow with the appropriate compiler flags"
)
# A worker says it whenever another one has made the last updates.
_ONCE = re.compile(r"global step \(tf.train.get_global_step\) has not been increased")


class Noise:
    """Decides which lines of all tasks are shown."""

    def __init__(self, has_logs: bool) -> None:
        self._has_logs = has_logs
        self._said = False

    def hides(self, line: str) -> bool:
        """Whether a line is not shown: it says nothing, or was said before."""
        if self._has_logs and _START_UP.search(line):
            return True
        if not _ONCE.search(line):
            return False
        said, self._said = self._said, True
        return said
