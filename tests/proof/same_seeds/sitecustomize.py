"""Runs with the same seeds in each version of TensorFlow, and records a training.

Python imports this file by itself if its folder is on PYTHONPATH. The seed of an
operation depends on its name scope, not on the count of operations before it, which
differs between versions. With PROOF_RECORDING the first training of an Estimator is
recorded in this folder, without hookbridge, by what it checks for NaN, and stops after
PROOF_STEPS steps. Python 3.7 has to read it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,method-assign,union-attr"

import importlib.abc
import importlib.util
import json
import os
import random
import sys
import zlib

FOLDER = os.environ.get("PROOF_RECORDING", "")
STEPS = int(os.environ["PROOF_STEPS"])


def seeds(module):
    """`get_seed` with a seed of the name scope."""

    def get_seed(op_seed):
        scope = module.ops.get_default_graph().get_name_scope()
        return 1, op_seed if op_seed is not None else zlib.crc32(scope.encode()) >> 1

    module.get_seed = get_seed


class Recording:
    """The loss and the weights of a training, in the files of a reference run."""

    def __init__(self, session):
        import numpy
        import tensorflow

        self.numpy = numpy
        trained = tensorflow.compat.v1.trainable_variables()
        self.variables = {variable.op.name: variable for variable in trained}
        self.weights = session.run(self.variables)
        self.lines = []
        facts = {
            name: {"kind": "weight", "shape": value.shape, "dtype": str(value.dtype)}
            for name, value in self.weights.items()
        }
        os.makedirs(os.path.join(FOLDER, "arrays"))
        self.save(0)
        with open(os.path.join(FOLDER, "recording.json"), "w") as file:
            json.dump({"format": 1, "variables": facts}, file)

    def save(self, step):
        arrays = {"variables/" + name: w for name, w in self.weights.items()}
        file = os.path.join(FOLDER, "arrays", str(step) + ".npz")
        self.numpy.savez(file, **arrays)

    def step(self, session, loss):
        before, self.weights = self.weights, session.run(self.variables)
        line = {
            "step": len(self.lines) + 1,
            "loss": loss,
            "batch": {},
            "gradient_norms": {},
            "applied_norms": {},
            "norms": {name: self.norm(w) for name, w in self.weights.items()},
            "change_norms": {
                name: self.norm(w - before[name]) for name, w in self.weights.items()
            },
        }
        self.lines.append(json.dumps(line) + "\n")
        if line["step"] in (1, STEPS):
            self.save(line["step"])
        with open(os.path.join(FOLDER, "steps.jsonl"), "w") as file:
            file.writelines(self.lines)

    def norm(self, value):
        return float(self.numpy.linalg.norm(value))


def recorded(module):
    """`NanTensorHook` that records its training, and stops it."""
    hook = module.NanTensorHook
    before_run, after_run = hook.before_run, hook.after_run
    made = []  # type: ignore[var-annotated]

    def before(self, run_context):
        if FOLDER and not made:
            made.append(Recording(run_context.session))
        return before_run(self, run_context)

    def after(self, run_context, run_values):
        after_run(self, run_context, run_values)
        if made and len(made[0].lines) < STEPS:
            made[0].step(run_context.session, float(run_values.results))
        if made and len(made[0].lines) >= STEPS:
            run_context.request_stop()

    hook.before_run, hook.after_run = before, after


def in_order(module):
    """Data sets that are not shuffled, and whose elements are made one by one.

    TensorFlow 1.15 has an order of its own, and elements that are made side by side
    draw their random numbers in no order.
    """
    module.DatasetV2.shuffle = lambda self, *values, **more: self
    for kind in (module.DatasetV1, module.DatasetV2):
        kind.map = one_by_one(kind.map)


def one_by_one(original):
    """`map` that ignores `num_parallel_calls` and `deterministic`."""

    def mapped(self, function, *parallel, **named):
        for name in ("num_parallel_calls", "deterministic"):
            named.pop(name, None)
        return original(self, function, **named)

    return mapped


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
    "python.training.basic_session_run_hooks": recorded,
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
