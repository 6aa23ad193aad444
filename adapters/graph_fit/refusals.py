"""Which models train in a v1 graph, and which of them cannot have hooks."""

from __future__ import annotations

from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests import kinds as guests


def is_graph_model(model: Any) -> bool:
    """Whether Keras trains a model by session runs."""
    # It does so after `disable_v2_behavior()` or `disable_eager_execution()`, and for a
    # model that was built under a `tf.Graph`.
    return hasattr(model, "_make_train_function")


def check_model(model: Any, hook: Any) -> None:
    """Refuses a model whose steps are not runs of one session."""
    is_copy = type(model).__name__ == "DistributedCallbackModel"
    if is_copy or model._distribution_strategy:
        why = (
            "trains under a `tf.distribute` strategy, which makes copies of it. Leave "
            "the strategy out, leave v2 behaviour on, or keep the session loop."
        )
    elif model.run_eagerly:
        why = "runs eagerly. Compile it with `run_eagerly=False`."
    else:
        return
    raise errors.RefusedError(
        f"`{guests.name_of(hook)}` cannot run in `Model.fit` of `{model.name}`: the "
        f"model is built in a v1 graph and {why}",
        see="v1 graph in fit",
    )
