"""One callback in a training and in the evaluations within it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_recorder import EVENTS, noting
from estimator_models import STEPS, bare_model_fn, estimators, eval_input, train_input

import hookbridge as hb

ONE_KERAS = True


def _train_and_evaluate(callback: Any, folder: Path, wrapped: str) -> Any:
    """Evaluates after every epoch; training and evaluation may share their hooks."""
    config = estimators.RunConfig(
        str(folder / "model"), tf_random_seed=1, save_checkpoints_steps=STEPS
    )
    estimator = estimators.Estimator(bare_model_fn, config=config)
    train_hooks = hb.as_hooks(callback, steps_per_epoch=STEPS)
    eval_hooks = train_hooks
    if wrapped == "apart":
        eval_hooks = hb.as_hooks(callback, steps_per_epoch=STEPS)
    estimators.train_and_evaluate(
        estimator,
        estimators.TrainSpec(train_input, max_steps=5 * STEPS, hooks=train_hooks),
        estimators.EvalSpec(
            eval_input, steps=2, hooks=eval_hooks, throttle_secs=0, start_delay_secs=0
        ),
    )
    return estimator


@pytest.mark.parametrize(
    ("wrapped", "event"),
    [("once", "on_test_end"), ("apart", "on_test_batch_end"), ("once", "on_epoch_end")],
)
def test_stop_after_an_evaluation_in_mid_training(
    keras: Any, tmp_path: Path, wrapped: str, event: str
) -> None:
    """As in `fit`: evaluation and training share the flag."""
    seen: list[Any] = []

    def note(callback: Any, name: str, *args: Any) -> None:
        step = int(callback.model.optimizer.iterations.numpy())
        seen.append((name, step, id(callback.model)))
        if name == event and step >= 2 * STEPS:
            callback.model.stop_training = True

    callback = noting(keras, note, [e for e in EVENTS if not e.endswith("h_begin")])
    estimator = _train_and_evaluate(callback, tmp_path, wrapped)
    assert estimator.get_variable_value("global_step") == 2 * STEPS
    trained = {e[2] for e in seen if "test" not in e[0]}
    assert len(trained) == 1, seen
    evaluated = [e for e in seen if "test" in e[0]]
    assert {e[1] for e in evaluated} == {STEPS, 2 * STEPS}
    assert not trained & {e[2] for e in evaluated}
    assert seen[-1][0] in ("on_train_end", "on_test_end")


@pytest.mark.slow
def test_tensorboard_of_a_training_survives_its_evaluations(
    keras: Any, tmp_path: Path
) -> None:
    """The evaluation calls `set_model`, which makes new writers and counters."""
    callback = keras.callbacks.TensorBoard(
        str(tmp_path / "logs"), update_freq=2, write_graph=False
    )
    _train_and_evaluate(callback, tmp_path, "apart")
    steps = []
    for path in sorted((tmp_path / "logs" / "train").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            steps += [event.step for v in event.summary.value if "epoch_loss" in v.tag]
    assert steps == [0, 1, 2, 3, 4]
