"""What follows from the evidence of all files of a program.

This is the one place that decides whether `import tensorflow` means TensorFlow 1, in
which files, and whether the program needs the v1 behaviour and Keras 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hookbridge.migrate.reading.evidence import Evidence, Use


@dataclass(frozen=True)
class Meaning:
    """What a program means by TensorFlow."""

    # Shows TensorFlow 1; files without evidence of their own mean it too then.
    old: Use | None = None
    needs_v1: Use | None = None  # the first use that needs the v1 behaviour, if any
    switch: Use | None = None  # the program's own call that switches it on, if any
    estimator: Use | None = None  # the first use of Estimator, if any
    keras2: Use | None = None  # the first use that needs Keras 2, if any
    keras_choice: Use | None = None  # the program's own choice of its Keras, if any
    slim: Use | None = None  # the first use of a name that tf_slim stands for, if any
    # The names of TensorFlow that the program assigns to.
    written: frozenset[str] = frozenset()

    @property
    def is_of_v1(self) -> bool:
        """Whether models and layers of the program are those of a graph."""
        return bool(self.old or self.needs_v1 or self.switch or self.estimator)

    @property
    def v1(self) -> Use | None:
        """Why the v1 behaviour has to be switched on; None if it has not."""
        return self.old or (None if self.switch else self.needs_v1)

    def means_old(self, file: Evidence) -> bool:
        """Whether `import tensorflow` in a file of the program means TensorFlow 1."""
        return means_old_alone(file) or (self.old is not None and file.new is None)


def means_old_alone(file: Evidence) -> bool:
    """Whether the file itself shows TensorFlow 1."""
    return bool(file.old or (file.leftover and not file.new))


def of_files(files: Iterable[Evidence], v1: bool = False) -> Meaning:
    """The meaning of a program."""
    files = list(files)

    def first(kind: str) -> Use | None:
        uses = (getattr(file, kind) for file in files)
        return next((use for use in uses if use), None)

    old = next((e.old or e.leftover for e in files if means_old_alone(e)), None)
    estimator, switch, needs_v1 = (
        first("estimator"),
        first("switch"),
        first("v1_behaviour"),
    )
    written = frozenset().union(*(file.written for file in files))
    own_keras, slim = first("keras_choice"), first("slim")
    keras2 = first("keras2")
    result = Meaning(old, needs_v1, switch, estimator, keras2, own_keras, slim, written)
    if keras2 is None and (result.is_of_v1 or v1):
        # The models and layers of a graph are those of Keras 2.
        return replace(result, keras2=first("keras"))
    return result
