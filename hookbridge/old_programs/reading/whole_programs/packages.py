"""Packages beside TensorFlow that a program needs, and this machine may lack."""

from __future__ import annotations

from collections.abc import Iterator

from hookbridge.ground.compat import LAST_WITH_KERAS2
from hookbridge.ground.imports import extras, installed
from hookbridge.old_programs.reading.whole_programs.meaning import Meaning


def missing(meaning: Meaning, keras2: object) -> Iterator[tuple[object, list[str]]]:
    """Yield why a program needs packages, and the modules that are not installed.

    Without a TensorFlow on this machine nothing else is missing.

    Args:
      meaning: what the program means.
      keras2: why `tf.keras` has to be Keras 2, or None.
    """
    version = installed.tensorflow()
    if version is None:
        return
    needs: list[tuple[object, list[str]]] = [(meaning.slim, ["tf_slim"])]
    if version > LAST_WITH_KERAS2:
        needs.append((meaning.estimator, ["tensorflow_estimator", "tf_keras"]))
        needs.append((None if meaning.estimator else keras2, ["tf_keras"]))
    for why, modules in needs:
        lacking = [name for name in modules if not extras.is_installed(name)]
        if why and lacking:
            yield why, lacking
