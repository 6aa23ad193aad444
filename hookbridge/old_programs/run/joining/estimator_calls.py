"""Guests in `Estimator.train`, `Estimator.evaluate` and `train_and_evaluate`."""

from __future__ import annotations

from typing import Any

from hookbridge.estimator import restored_package
from hookbridge.ground import patching
from hookbridge.old_programs.run.joining.joiner import Joiner


def join(joiner: Joiner) -> None:
    """Let guests join what Estimators train and evaluate from now on."""
    namespaces = restored_package.namespaces()
    # Every Estimator class derives from this one, and few override these methods.
    base = namespaces.v1.Estimator
    train, evaluate, predict = base.train, base.evaluate, base.predict

    def joined_train(
        self: Any, input_fn: object, hooks: Any = None, *args: Any, **named: Any
    ) -> Any:
        if joiner.is_inside:
            return train(self, input_fn, hooks, *args, **named)
        both = [*(hooks or ()), *joiner.hooks()]
        with joiner.inside():
            return train(self, input_fn, both, *args, **named)

    def joined_evaluate(
        self: Any,
        input_fn: object,
        steps: object = None,
        hooks: Any = None,
        *args: Any,
        **named: Any,
    ) -> Any:
        # Not `is_inside`: `train_and_evaluate` evaluates inside of a training, and the
        # guests join that evaluation.
        both = [*(hooks or ()), *joiner.evaluation_hooks()]
        with joiner.inside():
            return evaluate(self, input_fn, steps, both, *args, **named)

    def plain_predict(self: Any, *args: Any, **named: Any) -> Any:
        predictions = predict(self, *args, **named)
        while True:
            with joiner.inside():
                try:
                    value = next(predictions)
                except StopIteration:
                    return
            yield value

    patching.Patches(
        base,
        {"train": joined_train, "evaluate": joined_evaluate, "predict": plain_predict},
    ).install()
    together = namespaces.v2.train_and_evaluate

    def train_and_evaluate(
        estimator: object, train_spec: object, eval_spec: object
    ) -> Any:
        with joiner.evaluated_with(estimator, eval_spec):
            return together(estimator, train_spec, eval_spec)

    for namespace in namespaces:
        methods = {"train_and_evaluate": train_and_evaluate}
        patching.Patches(namespace, methods).install()
