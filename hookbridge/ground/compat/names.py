"""Private names of TensorFlow's and Keras's modules: where they are and why.

`tests/test_private_names.py` resolves every row on every supported version, so that
an upgrade that moves a name fails loudly and says which.
"""

from __future__ import annotations

import functools
import importlib
import operator
import re
from typing import Any, NamedTuple

from hookbridge.errors import PrivateNameMovedError
from hookbridge.ground.compat.versions import tf_version


class PrivateName(NamedTuple):
    """The place `"module:attribute"` of a private object, or `"module"`, and its use.

    `min_tf` and `max_tf` are the first and last `(major, minor)` that need it.
    """

    path: str
    why: str
    min_tf: tuple[int, int] = (2, 15)
    max_tf: tuple[int, int] | None = None


# Key, place, and the first or the last TensorFlow that needs it; then the use. A line
# that goes on is indented once more.
_TABLE = """
lookup_ops = tensorflow.python.ops.lookup_ops
    lookup tables of `tf.contrib.lookup` that have no public name today
data_flow_ops = tensorflow.python.ops.data_flow_ops
    `tf.contrib.staging.StagingArea`, which has no public name today
summary_ops = tensorflow.python.ops.summary_ops_v2
    the summaries of `tf.contrib.summary`, which have no public name today
distribute_config = tensorflow.python.distribute.distribute_config:DistributeConfig
    `tf.contrib.distribute.DistributeConfig`, which has no public name today
deprecated = tensorflow.python.util.deprecation:deprecated
    the decorator `tf.contrib.framework.deprecated`, which has no public name
autograph_sources = tensorflow.python.autograph.pyct.inspect_utils
    `getimmediatesource`, which gives AutoGraph the source that it converts
add_control_inputs = tensorflow.python.framework.ops:Operation._add_control_inputs
    make a tower's deferred update wait for the update with averaged gradients
create_op = tensorflow.python.framework.ops:Graph._create_op_internal
    give every tower the first tower's updates of the shared variables
eager_mode = tensorflow.python.eager.context:eager_mode
    run callbacks eagerly while a v1 graph is the default graph
BaseResourceVariable = tensorflow.python.ops.resource_variable_ops:BaseResourceVariable
    a graph-mode variable over a handle that is a placeholder
ResourceVariable = tensorflow.python.ops.resource_variable_ops:ResourceVariable
    the class of eager variables; ours derives from it and tells of each use
copy_handle_data = tensorflow.python.ops.handle_data_util:copy_handle_data
    give that placeholder the dtype and shape of the eager variable
FetchMapper = tensorflow.python.client.session:_FetchMapper
    take fetch structures apart and build results exactly as Session.run
eager_context = tensorflow.python.eager.context:context
    partition graphs of functions, and a graph's functions for the runtime
cancellation = tensorflow.python.eager.cancellation
    keep `RunOptions.timeout_in_ms` in a function of the eager runtime
xplane_pb2 = tensorflow.tsl.profiler.protobuf.xplane_pb2
    read the profile that stands for the RunMetadata of a step
session_make_callable =
        tensorflow.python.client.session:BaseSession._make_callable_from_options
    run a step with feeds without what `run` does to them in every step
config_pb2 = tensorflow.core.protobuf.config_pb2
    the message CallableOptions, which `tf.compat.v1` does not export
session_do_call = tensorflow.python.client.session:BaseSession._do_call
    give errors of a callable the operation and message that `run` gives them
global_step_read =
        tensorflow.python.training.training_util:_get_or_create_global_step_read
    the shared read that hooks order before the update of the step
global_step_read_key = tensorflow.python.training.training_util:GLOBAL_STEP_READ_KEY
    the collection in which TensorFlow looks up that read
saveable_object = tensorflow.python.training.saving.saveable_object
    save the step of a Keras graph under the name of a session loop too
MetricsList = keras.src.trainers.compile_utils:MetricsList from 2.16
    where Keras 3 callbacks look up whether a metric should rise or fall
keras_training = keras.src.engine.training until 2.15
    keep tapped tensors from Keras's sum over all processes of a `fit`
tf_keras_training = tf_keras.src.engine.training from 2.16
    keep tapped tensors from Keras's sum over all processes of a `fit`
default_graph_stack = tensorflow.python.framework.ops:_default_graph_stack
    whether an evaluation runs inside a training session of this thread
tf_export = tensorflow.python.util.tf_export from 2.16
    the base of the Estimator package's export decorator
tf_decorator = tensorflow.python.util.tf_decorator from 2.16
    the undecorated symbol, as the export decorator files names on it
deprecation = tensorflow.python.util.deprecation from 2.16
    the deprecation marks of the Estimator package's symbols
distribute_coordinator = tensorflow.python.distribute.distribute_coordinator from 2.16
    runs the tasks of an Estimator with a strategy over several workers
distribute_coordinator_context =
        tensorflow.python.distribute.distribute_coordinator_context from 2.16
    which task of the cluster this thread runs
multi_worker_util = tensorflow.python.distribute.multi_worker_util from 2.16
    cluster specifications in any of their forms
tf_keras_v1 = tf_keras.api._v1.keras from 2.16
    `tf.compat.v1.keras` and the legacy layers for the Estimator package
tf_keras_v2 = tf_keras.api._v2.keras from 2.16
    `tf.keras` with its `__internal__` names for the Estimator package
"""


def _read(row: str) -> tuple[str, PrivateName]:
    head, _, why = row.partition("\n")
    key, _, path, *bound = head.split()
    name = PrivateName(path, " ".join(why.split()))
    if bound == ["from", "2.16"]:
        name = name._replace(min_tf=(2, 16))
    elif bound == ["until", "2.15"]:
        name = name._replace(max_tf=(2, 15))
    return key, name


_ROWS = re.split(r"\n(?=\w)", _TABLE.strip().replace("\n        ", " "))
PRIVATE = dict(map(_read, _ROWS))


@functools.cache
def private(key: str) -> Any:
    """The private object filed under `key` in `PRIVATE`."""
    row = PRIVATE[key]
    module_name, _, attribute = row.path.partition(":")
    try:
        module = importlib.import_module(module_name)
        return operator.attrgetter(attribute)(module) if attribute else module
    except (ImportError, AttributeError) as e:
        raise PrivateNameMovedError(
            f"hookbridge needs `{row.path}` ({row.why}), which TensorFlow "
            f"{'.'.join(map(str, tf_version()))} does not have there. Use a "
            "TensorFlow version listed in the README or report this version."
        ) from e
