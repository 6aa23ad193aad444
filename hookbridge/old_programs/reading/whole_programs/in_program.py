"""What its programs say of one module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hookbridge.old_programs.reading.names.import_statements import as_v1
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.one_file.unequal_rows import Parameter
from hookbridge.old_programs.reading.whole_programs.meaning import Meaning
from hookbridge.tf1_names import old_keras
from hookbridge.tf1_names.outcome import ESTIMATOR, V1, Resolution
from hookbridge.tf1_names.resolution import is_of_no_version, resolve
from hookbridge.tf1_names.target import Target


@dataclass(frozen=True)
class InProgram:
    """Where a module stands in the programs that it is a part of."""

    meaning: Meaning  # what they mean by TensorFlow
    # The same, for a main file without the other programs that import it.
    of_main: Meaning
    targets_tf1: bool  # whether `import tensorflow` means TensorFlow 1 in the module
    # The modules of the programs that it imports, by dotted name.
    own_modules: Mapping[str, Module]
    is_main: bool  # whether it is the main file of one
    is_run: bool  # whether it is that and does something when it runs
    # Whether processes start in it: it is run, or is the first `conftest.py` of tests.
    starts: bool = False
    # Whether it is the package whose import `python -m` and pytest load TensorFlow by,
    # before a main file inside of it runs.
    loads_first: bool = False
    # Canonical names that it imports from TensorFlow, and that nothing uses.
    unused: frozenset[str] = frozenset()
    # The names that other files of its programs import from it, one by one.
    taken: frozenset[str] = frozenset()
    # The names that it binds by imports and that other files of its programs use.
    shared: frozenset[str] = frozenset()
    # Parameters of functions that get lists which may have rows of unequal length.
    rows: frozenset[Parameter] = frozenset()
    # The names in it that code of its programs in a block for a GPU calls.
    called_on_gpu: frozenset[str] = frozenset()
    # The libraries that the other files of its programs import.
    libraries: frozenset[str] = frozenset()
    # What it imports from libraries that removed it, and does not use, by full names.
    unused_removed: frozenset[str] = frozenset()

    def outcome(self, name: str, target: Target) -> Resolution | None:
        """Return what becomes of a name in the module; None if it stays as it is.

        Args:
          name: the canonical name.
          target: the TensorFlow that the module has to run on.
        """
        outcome = None if self.meaning.assigns(name) else resolve(name, target)
        if outcome is None:
            return None
        is_there = old_keras.is_there(name, target)
        if is_there and not self._needs_other_keras_than(target):
            return None
        if self.targets_tf1 and outcome.code == "ESTIMATOR":
            outcome = resolve(as_v1(name), target) or outcome
        # A rewrite makes these names of those of TensorFlow 1.
        of_v1 = name.startswith((f"{V1}.", f"{ESTIMATOR}."))
        of_v1 |= self.targets_tf1 and name.startswith("tf.")
        if of_v1 and outcome.code == "MISSING" and is_of_no_version(name):
            return Resolution("NOT_IN_1_15")
        return old_keras.in_file(outcome, target, of_tf1=self.targets_tf1)

    def _needs_other_keras_than(self, target: Target) -> bool:
        """Return whether `keras` in the module is not the Keras of the target."""
        is_other = not target.has_estimator or self.meaning.keras_argument is not None
        return self.targets_tf1 or (is_other and self.meaning.keras2 is not None)
