"""Runs with the same seeds in each version of TensorFlow, and writes the losses.

Python imports this file by itself if its folder is on PYTHONPATH. The seed of an
operation depends on its name scope, not on the count of operations before it, which
differs between versions. The losses that an Estimator checks for NaN go into the file
PROOF_LOSSES; training stops after PROOF_STEPS of them. Python 3.7 has to read it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,method-assign,union-attr"

import importlib.abc
import importlib.util
import os
import random
import sys
import zlib

FILE = os.environ["PROOF_LOSSES"]
STEPS = int(os.environ["PROOF_STEPS"])


def seeds(module):
    """`get_seed` with a seed of the name scope."""

    def get_seed(op_seed):
        scope = module.ops.get_default_graph().get_name_scope()
        return 1, op_seed if op_seed is not None else zlib.crc32(scope.encode()) >> 1

    module.get_seed = get_seed


def losses(module):
    """`NanTensorHook` that writes the losses, and stops the training."""
    after_run, count = module.NanTensorHook.after_run, [0]

    def writes(self, run_context, run_values):
        after_run(self, run_context, run_values)
        with open(FILE, "a") as file:
            file.write(f"{float(run_values.results)!r}\n")
        count[0] += 1
        if count[0] >= STEPS:
            run_context.request_stop()

    module.NanTensorHook.after_run = writes


def in_order(module):
    """Data sets that are not shuffled: TensorFlow 1.15 has an order of its own."""
    module.DatasetV2.shuffle = lambda self, *values, **more: self


def one_order(module):
    """Files that are read together, in an order that does not depend on the clock."""
    original = module.parallel_interleave

    def interleave(
        function, cycle_length, block_length=1, sloppy=False, *more, **named
    ):
        return original(function, cycle_length, block_length, False, *more, **named)

    module.parallel_interleave = interleave


CHANGES = {
    "python.data.experimental.ops.interleave_ops": one_order,
    "python.data.ops.dataset_ops": in_order,
    "python.framework.random_seed": seeds,
    "python.training.basic_session_run_hooks": losses,
    "numpy.random": lambda module: module.seed(1),
}


def both(run, change):
    """Runs a module, then changes it."""

    def changed(module):
        run(module)
        change(module)

    return changed


class Finder(importlib.abc.MetaPathFinder):
    """Changes a module after it is imported."""

    def find_spec(self, name, path, target=None):
        change = CHANGES.get(name) or CHANGES.get(name.partition(".")[2])
        if change is None:
            return None
        for finder in sys.meta_path:
            spec = finder is not self and finder.find_spec(name, path, target)
            if spec:
                spec.loader.exec_module = both(spec.loader.exec_module, change)
                return spec
        return None


random.seed(1)
sys.meta_path.insert(0, Finder())
