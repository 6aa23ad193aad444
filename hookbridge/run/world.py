"""Which TensorFlow a program gets: decided from its source, entered once.

A *world* is what the program finds in its process: which Keras, which behaviour of
TensorFlow, and what `import tensorflow` means in the program's own files.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from hookbridge import compat, errors, extras
from hookbridge.compat import LAST_WITH_KERAS2
from hookbridge.run.evidence import Evidence, Use
from hookbridge.run.launch import Launch

LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


@dataclass(frozen=True)
class World:
    """What a program finds in its process.

    Attributes:
      old: whether files without evidence of their own mean TensorFlow 1 when they
        import `tensorflow`.
      v1: whether the v1 behaviour of TensorFlow is switched on.
      keras2: whether `tf.keras` is to be Keras 2; None leaves it as it is.
      estimator: the first use of Estimator in the program, if any.
      slim: the first use of a name that tf_slim stands for, if any.
      reasons: why the world is as it is, for the line that `told` returns.
    """

    old: bool = False
    v1: bool = False
    keras2: bool | None = None
    estimator: Use | None = None
    slim: Use | None = None
    reasons: tuple[str, ...] = field(default=())

    def told(self) -> str:
        """One line about the world."""
        parts = ["`import tensorflow` is tensorflow.compat.v1"] if self.old else []
        parts += ["v1 behaviour"] if self.v1 else []
        if self.keras2 is not None:
            parts.append("Keras 2" if self.keras2 else "Keras 3")
        parts += ["Estimator"] if self.estimator else []
        world = ", ".join(parts) or "TensorFlow as it is"
        return f"{world} ({'; '.join(self.reasons)})" if self.reasons else world


def means_old(evidence: Evidence, world: World | None) -> bool:
    """Whether `import tensorflow` in a file means TensorFlow 1.

    Args:
      evidence: the evidence in the file.
      world: decides for a file without evidence; None decides for TensorFlow 2.
    """
    if evidence.old:
        return True
    if evidence.new:
        return False
    return bool(evidence.leftover) or (world is not None and world.old)


def decide(files: Sequence[Evidence], launch: Launch) -> World:
    """The world of a program, from the evidence in its files and the flags.

    Raises:
      errors.InvalidArgumentError: flags and environment ask for two worlds.
      errors.MissingExtraError: what the program needs is not installed.
    """
    _check_flags(launch)
    reasons = []
    old = next((e.old or e.leftover for e in files if means_old(e, None)), None)
    needs_v1 = next((e.v1_behaviour for e in files if e.v1_behaviour), None)
    switch = next((e.switch for e in files if e.switch), None)
    estimator = next((e.estimator for e in files if e.estimator), None)
    if old:
        reasons.append(f"TensorFlow 1: {old}")
    v1 = bool(old or (needs_v1 and not switch))
    if v1 and not old:
        reasons.append(f"v1 behaviour: {needs_v1}")
    if launch.v1 is not None:
        v1 = launch.v1
        reasons.append("--v1" if v1 else "--v2")
    keras2, why = _keras(files, launch, bool(v1 or old or switch or estimator))
    reasons += [why] if why else []
    slim = next((e.slim for e in files if e.slim), None)
    world = World(bool(old), v1, keras2, estimator, slim, tuple(reasons))
    _check_installed(world)
    return world


def _keras(
    files: Sequence[Evidence], launch: Launch, is_of_v1: bool
) -> tuple[bool | None, str]:
    """Which Keras, and why."""
    if compat.installed_tf_version() <= LAST_WITH_KERAS2:
        if launch.keras == 3:
            version = ".".join(map(str, compat.installed_tf_version()))
            raise errors.InvalidArgumentError(
                "Received --keras=3; expected --keras=2 or nothing: the Keras of "
                f"TensorFlow {version} is Keras 2."
            )
        return None, ""
    if launch.keras is not None:
        return launch.keras == 2, f"--keras={launch.keras}"
    if given := os.environ.get(LEGACY_KERAS):
        return _is_true(given), f"{LEGACY_KERAS}={given}"
    needs = next((e.keras2 for e in files if e.keras2), None)
    if needs is None and is_of_v1:
        needs = next((e.keras or e.estimator for e in files), None)
        needs = next((e.keras or e.estimator for e in files if e.keras), needs)
    return (True, f"Keras 2: {needs}") if needs else (None, "")


def _check_flags(launch: Launch) -> None:
    given = os.environ.get(LEGACY_KERAS)
    if given and launch.keras is not None and _is_true(given) != (launch.keras == 2):
        raise errors.InvalidArgumentError(
            f"Received --keras={launch.keras} and the environment variable "
            f"{LEGACY_KERAS}={given}, which asks for the other Keras; expected one of "
            "them."
        )


def _is_true(value: str) -> bool:
    return value.lower() in ("1", "true")


def _check_installed(world: World) -> None:
    """Makes sure that what the program needs is installed.

    Raises:
      errors.MissingExtraError: something is missing.
    """
    needs: list[tuple[str, str, object]] = [("tf_slim", "contrib", world.slim)]
    if compat.installed_tf_version() > LAST_WITH_KERAS2:
        needs.append(("tensorflow_estimator", "estimator", world.estimator))
        needs.append(("tf_keras", "estimator", world.estimator))
        last = world.reasons[-1] if world.keras2 and world.reasons else None
        needs.append(("tf_keras", "keras2", last))
    for module, extra, why in needs:
        if why:
            extras.check(module, f"The program ({why})", extra=extra)


def enter(world: World) -> None:
    """Prepares this process as the world says; TensorFlow is imported here.

    Raises:
      errors.ImportOrderError: TensorFlow was imported before.
    """
    check_not_imported()
    if world.keras2 is not None:
        os.environ[LEGACY_KERAS] = "1" if world.keras2 else "0"
    import tensorflow as tf

    from hookbridge import estimator

    if world.v1:
        logger = tf.get_logger()
        level = logger.level
        # The program's author did not write the call that TensorFlow warns of.
        logger.setLevel("ERROR")
        tf.compat.v1.disable_v2_behavior()
        logger.setLevel(level)
    if has_estimator(world):
        estimator.install()


def check_not_imported() -> None:
    """Makes sure that the choice of Keras and of behaviour still has an effect.

    Raises:
      errors.ImportOrderError: TensorFlow was imported before.
    """
    if "tensorflow" in sys.modules:
        raise errors.ImportOrderError(
            "TensorFlow was imported before `hookbridge run` could prepare it, by "
            "sitecustomize, usercustomize, a .pth file or PYTHONSTARTUP; expected a "
            "Python that starts without it (`python -X importtime -c pass` shows who "
            "imports it)."
        )


def has_estimator(world: World) -> bool:
    """Whether this process has Estimator: the program uses it, or it is installed.

    Libraries may look for an Estimator that the program itself does not use.
    """
    names = ["tensorflow_estimator"]
    if compat.installed_tf_version() > LAST_WITH_KERAS2:
        names.append("tf_keras")
    found = all(importlib.util.find_spec(name) is not None for name in names)
    return bool(world.estimator) or found
