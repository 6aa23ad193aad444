"""Writes docs/hook-support.md from the table of the tests."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import hook_support as support  # noqa: E402 - needs the path

PAGE = f"""# Hooks in `fit`

What each built-in hook can do in `fit`, `evaluate` and `predict`.

*carried*: the hook ran to its end, and its effect (files, stop, values) was there.
**refused**: a `hb.errors.RefusedError` before the first step, with the reason and the
way out.

Each cell holds for each of these, and each was run
(`tests/adapters/fit_loop/test_hook_support.py`, `tests/v1_mode/test_stock_hooks.py`):

- `tf.keras` of TF 2.15, tf_keras and Keras 3;
- without a strategy, and under `MirroredStrategy` on two logical CPUs;
- for Keras 2, [a v1 graph](graph-fit.md), after `disable_v2_behavior()` or
  `disable_eager_execution()`, without a strategy.

The row `hb.in_begin` is `hb.in_begin(lambda: FinalOpsHook(...))`, with a tensor that is
made on the graph of the run.

{support.table()}

## Why a hook is refused

{support.reasons()}

## What to know

- `StepCounterHook` names its rate in a v1 graph by the variable that counts, such as
  `training/SGD/iter/sec`.
- `ProfilerHook`, `StepCounterHook` and `CheckpointSaverHook` act when the global step
  moves, which it does in `fit` only. TensorFlow makes `ProfilerHook`'s writer in its
  constructor and refuses that while eager execution is on: construct it under
  `with tf.Graph().as_default():`.
- `GlobalStepWaiterHook` passes when its step has passed already; it is refused where
  it would wait for ever, since nobody else moves the step.
- A stop ends the loop that it was asked in. Keras 2 has no flag for `evaluate` and
  `predict`: they end as at the end of their data, of which Keras may warn.
- A callback may start another loop on the model, with hooks of its own, or call
  `train_on_batch`: the hooks of the outer loop are not told of what happens there,
  and count its training steps. One hook cannot be in both.
- A `Scaffold` of a hook prepares the session as in a `MonitoredSession`, its
  `init_fn` once in each run.
- The `.meta` file beside a checkpoint of `fit` shows the graph that hooks saw and
  cannot be run: its variables are placeholders for the model's. Build the graph in
  code and restore the checkpoint into it with a `Saver`.
- A v1 optimizer (`tf.compat.v1.train.AdamOptimizer`) cannot apply gradients to the
  model's variables in a hook. Write the update with `tf.compat.v1.assign`, or leave it
  to the model's optimizer.
- A hook that fetches tensors of the step in `end` (`LoggingTensorHook(at_end=True)`,
  `FinalOpsHook`) gets the values of the last step, and the log says so: `fit` has no
  further batch, on which a session would compute them anew.
- `run_context.original_args.fetches` is what a session loop would fetch, for hooks to
  fetch too: `{{name: tensor}}` of the outputs in `predict`, of the loss of the batch
  and of the metrics in `fit` and `evaluate`.
- A hook whose constructor took tensors or ops of another graph is refused before
  training. Give it names (`"loss:0"`), or let it be made in `begin`, on the graph of
  the run: `hb.in_begin(lambda: FinalOpsHook(tf.compat.v1.train.get_global_step()))`.
- Under `run_eagerly=True` there is no graph of the step: hooks can fetch the loss, the
  metrics and `<layer>/output:0`.
- In a v1 graph hooks see the model's own graph and Keras's own session. A tensor of
  the step that is fetched outside a step is computed on the last batch; from a
  dataset it cannot be. A hook that reads a variable in the run of a step sees it
  before or after the update, as in a session loop.
- Under `MirroredStrategy` the loss is that of the whole batch; other tensors of the
  step are those of the first replica.
- `loss:0` is the loss of the step where `train_step` calls `compute_loss` or
  `compiled_loss`; where it calls neither, it is what the step returns as `loss`, the
  running mean if that is a metric's result.
"""


def main() -> None:
    (ROOT / "docs" / "hook-support.md").write_text(PAGE, encoding="utf-8")


if __name__ == "__main__":
    main()
