"""Which TensorFlow a program gets: decided from its source, entered once.

A *world* is what the program finds in its process: which Keras, which behaviour of
TensorFlow, and what `import tensorflow` means in the program's own files.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hookbridge import errors
from hookbridge.ground import compat, patching
from hookbridge.ground.compat import LAST_WITH_KERAS2
from hookbridge.ground.imports import extras
from hookbridge.old_programs.reading.one_file.evidence import LEGACY_KERAS, Evidence
from hookbridge.old_programs.reading.whole_programs import packages
from hookbridge.old_programs.reading.whole_programs.meaning import Meaning, meaning_of
from hookbridge.old_programs.run.located import Launch


@dataclass(frozen=True)
class World:
    """What a program finds in its process."""

    meaning: Meaning  # what the program means by TensorFlow
    v1: bool  # whether the v1 behaviour of TensorFlow is switched on
    keras2: bool | None  # whether `tf.keras` is to be Keras 2; None leaves it as it is
    why_keras: str  # empty where neither the program nor a flag asks for a Keras
    # Why the world is as it is, for the line that `describe` returns.
    reasons: tuple[str, ...]

    def describe(self) -> str:
        """Return one line about the world."""
        is_tf1 = self.meaning.why_tf1 is not None
        parts = ["`import tensorflow` is tensorflow.compat.v1"] if is_tf1 else []
        parts += ["v1 behaviour"] if self.v1 else []
        if self.why_keras:
            parts.append("Keras 2" if self.keras2 else "Keras 3")
        parts += ["Estimator"] if self.meaning.estimator else []
        world = ", ".join(parts) or "TensorFlow as it is"
        return f"{world} ({'; '.join(self.reasons)})" if self.reasons else world


def decide(files: Sequence[Evidence], launch: Launch) -> World:
    """Return the world of a program, from the evidence in its files and the flags."""
    reasons = []
    meaning = meaning_of(files, v1_behaviour=bool(launch.v1))
    if meaning.why_tf1:
        reasons.append(f"TensorFlow 1: {meaning.why_tf1}")
    v1 = meaning.why_v1 is not None
    if v1 and not meaning.why_tf1:
        reasons.append(f"v1 behaviour: {meaning.needs_v1}")
    if launch.v1 is not None:
        v1 = launch.v1
        reasons.append("--v1" if v1 else "--v2")
    keras2, why = _keras(meaning, launch)
    reasons += [why] if why else []
    for user, modules in packages.missing(meaning, why if keras2 else None):
        extras.check(*modules, user=f"The program ({user})")
    return World(meaning, v1, keras2, why, tuple(reasons))


def _keras(meaning: Meaning, launch: Launch) -> tuple[bool | None, str]:
    """Return which Keras the program gets, and why."""
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
    if flag := os.environ.get(LEGACY_KERAS):
        return flag.lower() in ("1", "true"), f"{LEGACY_KERAS}={flag}"
    needs = meaning.keras2 or meaning.estimator
    if needs:
        return True, f"Keras 2: {needs}"
    # Modules imported by a computed name have not been read yet, and may use Keras:
    # take Keras 2 to be safe.
    return (True if meaning.why_tf1 and keras2_is_installed() else None), ""


def enter(world: World) -> None:
    """Prepare this process as the world says; TensorFlow is imported here."""
    check_not_imported()
    if world.keras2 is not None:
        os.environ[LEGACY_KERAS] = "1" if world.keras2 else "0"
    _end_coordinators_with_threads()
    if world.v1:
        _disable_v2_behavior()
    _restore(world)
    if has_estimator(world):
        from hookbridge import estimator

        estimator.install()


def _restore(world: World) -> None:
    """Restore what TensorFlow or Keras has changed, if the program uses it."""
    from hookbridge import legacy
    from hookbridge.old_programs.run.restored import (
        callback_params,
        keras_constructors,
        old_meanings,
        validation_data,
    )

    if world.meaning.keras_argument is not None:
        keras_constructors.restore()
    old_meanings.restore()
    if world.keras2 is False or not keras2_is_installed():
        return
    if world.meaning.is_of_v1 and world.meaning.keras2 is not None:
        validation_data.restore()
    if world.meaning.shares_keras_session:
        legacy.share_keras_session()
    if world.meaning.callback_params is not None and not world.v1:
        callback_params.restore()


def _disable_v2_behavior() -> None:
    """Switch to v1 behaviour without a warning: the program did not write the call."""
    import tensorflow as tf

    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    tf.compat.v1.disable_v2_behavior()
    logger.setLevel(level)


def _end_coordinators_with_threads() -> None:
    """Let the process wait for the threads of its coordinators at its end.

    TensorFlow leaves them running, which now and then aborts a process that has done
    its work (docs/decisions/0006).
    """
    import tensorflow as tf

    from hookbridge.adapters.parameter_server.exit import end_with_threads

    def ends_with_threads(
        init: Callable[..., None], self: Any, /, *args: Any, **named: Any
    ) -> None:
        init(self, *args, **named)
        end_with_threads(self)

    kind = tf.distribute.experimental.ParameterServerStrategy
    patching.wrap(kind, __init__=ends_with_threads)


def check_not_imported() -> None:
    """Make sure that the choice of Keras and of behaviour still has an effect."""
    if "tensorflow" in sys.modules:
        raise errors.ImportOrderError(
            "TensorFlow was imported before `hookbridge run` could prepare it, by "
            "sitecustomize, usercustomize, a .pth file or PYTHONSTARTUP; expected a "
            "Python that starts without it (`python -X importtime -c pass` shows who "
            "imports it)."
        )


def keras2_is_installed() -> bool:
    """Return whether Keras 2 is installed."""
    is_in_tensorflow = compat.installed_tf_version() <= LAST_WITH_KERAS2
    return is_in_tensorflow or importlib.util.find_spec("tf_keras") is not None


def has_estimator(world: World) -> bool:
    """Return whether the program uses Estimator, or has it installed.

    Libraries may look for an Estimator that the program itself does not use.
    """
    has_package = importlib.util.find_spec("tensorflow_estimator") is not None
    return bool(world.meaning.estimator) or (has_package and keras2_is_installed())
