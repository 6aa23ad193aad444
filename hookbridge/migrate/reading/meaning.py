"""What follows from the evidence of all files of a program.

This is the one place that decides whether `import tensorflow` means TensorFlow 1, in
which files, and whether the program needs the v1 behaviour and Keras 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from hookbridge.migrate.reading.evidence import Evidence, Use


@dataclass(frozen=True)
class Meaning(Evidence):
    """What a program means by TensorFlow: the evidence of all its files.

    Its `old` shows TensorFlow 1 for sure; files without evidence of their own mean it
    too then.
    """

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
    kinds = [field.name for field in fields(Evidence) if field.name != "written"]
    uses = {kind: [getattr(file, kind) for file in files] for kind in kinds}
    uses["old"] = [e.old or e.leftover for e in files if means_old_alone(e)]
    result = Meaning(
        **{kind: next(filter(None, some), None) for kind, some in uses.items()},
        written=frozenset().union(*(file.written for file in files)),
    )
    if result.keras2 is None and (result.is_of_v1 or v1):
        # The models and layers of a graph are those of Keras 2.
        return replace(result, keras2=result.keras)
    return result
