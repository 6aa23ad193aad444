"""What a program means by TensorFlow: the evidence of its files, put together.

This is the one place that decides whether `import tensorflow` means TensorFlow 1 in a
file, and whether a program needs the v1 behaviour and Keras 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

from hookbridge.old_programs.reading.one_file.evidence import EAGER_ALONE, Evidence, Use


@dataclass(frozen=True)
class Meaning(Evidence):
    """What a program means by TensorFlow: the evidence of all its files."""

    # What shows TensorFlow 1 for sure: files without evidence of their own mean it too.
    why_tf1: Use | None = None

    @property
    def is_of_v1(self) -> bool:
        """Return whether the program builds its models and layers in a graph."""
        return bool(self.why_tf1 or self.needs_v1 or self.switch or self.estimator)

    @property
    def shares_keras_session(self) -> bool:
        """Return whether its threads use one session: Keras was a package of its own.

        The Keras of TensorFlow 1.15 had a session for each thread.
        """
        return self.is_of_v1 and self.keras_package is not None

    @property
    def why_v1(self) -> Use | None:
        """What needs the v1 behaviour to be switched on; None if nothing does."""
        return self.why_tf1 or (None if self.switch else self.needs_v1)

    @property
    def lacks_switch(self) -> Use | None:
        """What needs a call that switches v1 behaviour on, and that it does not have.

        Under `run` a program of TensorFlow 1 gets the whole of it, even if the program
        only ends eager execution.
        """
        if self.switch is None:
            return self.needs_v1 or self.why_tf1
        return self.why_tf1 if self.switch.name.endswith(EAGER_ALONE) else None

    def targets_tf1(self, file: Evidence) -> bool:
        """Return whether `import tensorflow` in a file means TensorFlow 1."""
        return shows_tf1(file) or (self.why_tf1 is not None and file.new is None)


def shows_tf1(file: Evidence) -> bool:
    """Return whether the file itself shows TensorFlow 1."""
    return bool(file.old or file.pin or (file.leftover and not file.new))


def meaning_of(files: Iterable[Evidence], v1_behaviour: bool = False) -> Meaning:
    """Return the meaning of a program.

    Args:
      files: what each of its files shows.
      v1_behaviour: whether a flag asks for v1 behaviour; the models of its graphs are
        those of Keras 2.
    """
    files = list(files)
    result = Meaning(
        **_first_uses(files),
        assigned=frozenset().union(*(file.assigned for file in files)),
        why_tf1=_why_tf1(files),
    )
    if result.keras2 is None and (result.is_of_v1 or v1_behaviour):
        # The models and layers of a graph are those of Keras 2.
        return replace(result, keras2=result.keras)
    if result.keras2 is None and result.keras is not None and not result.keras3:
        return replace(result, keras2=result.keras2_method)
    return result


def _first_uses(files: Sequence[Evidence]) -> dict[str, Use | None]:
    """Return the first use of each kind."""
    names = [field.name for field in fields(Evidence)]
    kinds = [name for name in names if name != "assigned"]
    uses = {kind: [getattr(file, kind) for file in files] for kind in kinds}
    return {kind: next(filter(None, some), None) for kind, some in uses.items()}


def _why_tf1(files: Iterable[Evidence]) -> Use | None:
    """Return the first use in a file that shows TensorFlow 1 by itself."""
    uses = (file.old or file.pin or file.leftover for file in filter(shows_tf1, files))
    return next(uses, None)
