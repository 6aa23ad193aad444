"""`%load_ext hookbridge` makes the world of TensorFlow 1 in a running notebook."""

from __future__ import annotations

import os
import sys

from hookbridge import errors
from hookbridge.ground.imports import extras
from hookbridge.old_programs.reading.one_file.evidence import Evidence, Use
from hookbridge.old_programs.run import world
from hookbridge.old_programs.run.located import Launch, OwnCode
from hookbridge.old_programs.run.own_modules import OwnFinder
from hookbridge.old_programs.run.own_program import Program

LINE = "%load_ext hookbridge"


def load_ipython_extension(shell: object) -> None:
    """Run `%load_ext hookbridge`: the cells that follow are those of TensorFlow 1.

    Args:
      shell: IPython's shell, which calls this function.

    Raises:
      errors.ImportOrderError: TensorFlow was imported before.
    """
    if any(isinstance(finder, OwnFinder) for finder in sys.meta_path):
        return  # `hookbridge run` runs the notebook, or the line stands there twice
    if "tensorflow" in sys.modules:
        raise errors.ImportOrderError(
            f"TensorFlow was imported before `{LINE}`; expected that line in the "
            "first cell, in front of every import of TensorFlow or Keras. Put it "
            "there, restart the kernel and run the cells from the first one on."
        )
    has_keras2 = world.keras2_is_installed()
    use = Use(f"`{LINE}`", "this notebook", 0)
    evidence = Evidence(tensorflow=use, pin=use, keras=use if has_keras2 else None)
    folder = os.getcwd()
    program = Program(Launch(folder), OwnCode(folder), {"": evidence})
    program.enter()
    sys.meta_path.insert(0, OwnFinder(program))
    from hookbridge.old_programs.run import ipython

    ipython.prepare(shell, program, targets_tf1=True)
    print(f"hookbridge: {program.world.describe()}")
    if not has_keras2:
        print(f"hookbridge: Keras 2 needs tf_keras: {extras.install_tf_keras()}")
