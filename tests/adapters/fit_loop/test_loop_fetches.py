"""`run_context.original_args.fetches` under `fit`: what a session loop fetches."""

from __future__ import annotations

from typing import Any

import hook_hosts as hosts
import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

Args: Any = tf.compat.v1.train.SessionRunArgs


class Refetching(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Fetches what its loop fetches, as hooks that time or log predictions do."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def before_run(self, run_context: Any) -> Any:
        return Args(run_context.original_args.fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(run_values.results)


class Logs:
    """The logs of each batch, as a callback gets them."""

    def __init__(self, keras: Any) -> None:
        self.seen: list[dict[str, Any]] = []
        self.callback = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: self.seen.append(dict(logs))
        )


def model_of(keras: Any, strategy: str, **compiled: Any) -> Any:
    mirrored = hosts.mirrored() if strategy == "MirroredStrategy" else None
    model = hosts.keras_model(keras, mirrored)
    if compiled:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, **compiled)
    return model


@pytest.mark.parametrize("strategy", ["default", "MirroredStrategy", "eager"])
def test_predict_gives_the_outputs(keras: Any, strategy: str) -> None:
    compiled = {"run_eagerly": True} if strategy == "eager" else {}
    model = model_of(keras, strategy, **compiled)
    hook = Refetching()
    expected = model.predict(
        hosts.X, batch_size=hosts.BATCH, verbose=0, callbacks=hb.as_callbacks(hook)
    )
    assert len(hook.seen) == hosts.BATCHES
    seen = np.concatenate([next(iter(each.values())) for each in hook.seen])
    np.testing.assert_allclose(seen, expected, rtol=1e-6)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_fit_gives_loss_and_metrics(keras: Any, run_eagerly: bool) -> None:
    model = model_of(keras, "default", metrics=["accuracy"], run_eagerly=run_eagerly)
    hook, logs = Refetching(), Logs(keras)
    model.fit(
        hosts.X,
        hosts.Y,
        batch_size=hosts.BATCH,
        shuffle=False,
        verbose=0,
        callbacks=hb.as_callbacks([hook, logs.callback]),
    )
    assert set(hook.seen[0]) == {"loss", "accuracy"}
    for seen, told in zip(hook.seen, logs.seen, strict=True):
        assert seen["accuracy"] == pytest.approx(told["accuracy"])
    # The loss of the batch, as a session loop fetches it; the logs have a mean.
    losses = [seen["loss"] for seen in hook.seen]
    assert np.mean(losses) == pytest.approx(logs.seen[-1]["loss"], rel=1e-4)


def test_evaluate_gives_loss_and_metrics(keras: Any) -> None:
    model = model_of(keras, "default", metrics=["accuracy"])
    hook = Refetching()
    result = model.evaluate(
        hosts.X,
        hosts.Y,
        batch_size=hosts.BATCH,
        verbose=0,
        return_dict=True,
        callbacks=hb.as_callbacks(hook),
    )
    assert hook.seen[-1]["accuracy"] == pytest.approx(result["accuracy"])


def test_names_of_metrics_stay_free_for_hooks(keras: Any) -> None:
    class Naming(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.name = tf.constant(1, name="accuracy").name

    hook = Naming()
    model = model_of(keras, "default", metrics=["accuracy"])
    model.fit(hosts.X, hosts.Y, verbose=0, callbacks=hb.as_callbacks(hook))
    assert hook.name == "accuracy:0"


def test_several_outputs_go_by_their_names(keras: Any) -> None:
    inputs = keras.layers.Input((4,))
    heads = [keras.layers.Dense(n, name=f"head{n}")(inputs) for n in (1, 2)]
    model = keras.Model(inputs, heads)
    hook = Refetching()
    model.predict(hosts.X[:8], verbose=0, callbacks=hb.as_callbacks(hook))
    assert {k: v.shape for k, v in hook.seen[0].items()} == {
        "head1": (8, 1),
        "head2": (8, 2),
    }
