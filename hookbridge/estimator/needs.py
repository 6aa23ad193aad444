"""The private TensorFlow names that the Estimator package reads.

The package imports some of them when it is imported, and reads the others when a
feature is used. Its last release is years old, and newer TensorFlows may move names.
So `check` looks all of them up before the package is imported: one error lists every
name that this TensorFlow does not have. A test compares the table with the package's
source; `python tests/estimator/estimator_package_scan.py` prints it.
"""

from __future__ import annotations

import importlib
from typing import Any

from hookbridge import compat
from hookbridge.estimator import stand_ins

# Module (or class) -> the names read from it, without those that a stand-in has, and
# without modules that have a row of their own.
NEEDS: dict[str, str] = {
    "tensorflow.core.framework.summary_pb2.Summary": "Value",
    "tensorflow.core.framework.variable_pb2": "VariableDef",
    "tensorflow.core.protobuf.rewriter_config_pb2": "RewriterConfig",
    "tensorflow.core.protobuf.tpu.compilation_result_pb2": "CompilationResultProto",
    "tensorflow.python.checkpoint.checkpoint": "Checkpoint frozen_saver",
    "tensorflow.python.checkpoint.checkpoint_management": "latest_checkpoint",
    "tensorflow.python.checkpoint.graph_view": "ObjectGraphView",
    "tensorflow.python.checkpoint.saveable_compat": "legacy_saveable_name",
    "tensorflow.python.data.util.nest": "flatten flatten_up_to pack_sequence_as",
    "tensorflow.python.distribute.cluster_resolver.tpu_cluster_resolver": (
        "is_running_in_gce"
    ),
    "tensorflow.python.distribute.distribute_lib": "_DefaultReplicaThreadMode",
    "tensorflow.python.eager": "function",
    "tensorflow.python.eager.context": "graph_mode",
    "tensorflow.python.eager.monitoring": "BoolGauge StringGauge",
    "tensorflow.python.eager.wrap_function": "VariableHolder WrappedGraph",
    "tensorflow.python.feature_column.feature_column": (
        "InputLayer _DenseColumn _EmbeddingColumn _LazyBuilder _LinearModel "
        "_NumericColumn _SharedEmbeddingColumn"
    ),
    "tensorflow.python.feature_column.feature_column_lib": (
        "CategoricalColumn EmbeddingColumn NumericColumn "
        "concatenate_context_input deserialize_feature_columns "
        "is_feature_column_v2 serialize_feature_columns"
    ),
    "tensorflow.python.feature_column.feature_column_v2": (
        "CategoricalColumn NumericColumn _create_weighted_sum "
        "_normalize_feature_columns _sanitize_column_name_for_variable_scope "
        "_verify_static_batch_size_equality"
    ),
    "tensorflow.python.feature_column.serialization": (
        "deserialize_feature_columns serialize_feature_columns"
    ),
    "tensorflow.python.feature_column.utils": "sequence_length_from_sparse_tensor",
    "tensorflow.python.framework.func_graph": (
        "convert_structure_to_signature func_graph_from_py_func"
    ),
    "tensorflow.python.framework.function": "Defun",
    "tensorflow.python.framework.ops": (
        "GraphKeys add_to_collection colocate_with convert_to_tensor "
        "get_collection get_to_proto_function internal_convert_to_tensor "
        "name_scope register_proto_function uid"
    ),
    "tensorflow.python.ops.clustering_ops": (
        "CLUSTERS_VAR_NAME COSINE_DISTANCE KMEANS_PLUS_PLUS_INIT KMeans "
        "RANDOM_INIT SQUARED_EUCLIDEAN_DISTANCE"
    ),
    "tensorflow.python.ops.control_flow_ops": (
        "ControlFlowContext XLAControlFlowContext with_dependencies"
    ),
    "tensorflow.python.ops.control_flow_util": "ENABLE_CONTROL_FLOW_V2",
    "tensorflow.python.ops.distributions": "normal",
    "tensorflow.python.ops.gen_lookup_ops": (
        "lookup_table_export_v2 lookup_table_find_v2 lookup_table_import_v2 "
        "lookup_table_insert_v2 lookup_table_size_v2 mutable_dense_hash_table_v2"
    ),
    "tensorflow.python.ops.gen_math_ops": "exp round",
    "tensorflow.python.ops.gen_sdca_ops": "sdca_optimizer_v2",
    "tensorflow.python.ops.lookup_ops": (
        "LookupInterface index_table_from_tensor index_to_string_table_from_tensor"
    ),
    "tensorflow.python.ops.nn": "log_poisson_loss sigmoid_cross_entropy_with_logits",
    "tensorflow.python.ops.ref_variable": "_from_proto_fn _to_proto_fn",
    "tensorflow.python.ops.string_ops": "as_string",
    "tensorflow.python.ops.summary_ops_v2": (
        "_summary_state legacy_raw_flush summary_writer_initializer_op"
    ),
    "tensorflow.python.ops.variable_scope": "_pure_variable_scope",
    "tensorflow.python.ops.variables": "PartitionedVariable",
    "tensorflow.python.platform.gfile": "ListDirectory",
    "tensorflow.python.platform.tf_logging": "warn",
    "tensorflow.python.profiler.trace": "Trace",
    "tensorflow.python.saved_model.constants": "TRAIN_OP_KEY",
    "tensorflow.python.saved_model.loader_impl": (
        "SavedModelLoader _get_main_op_tensor get_asset_tensors"
    ),
    "tensorflow.python.saved_model.model_utils": (
        "EXPORT_TAG_MAP SIGNATURE_KEY_MAP build_all_signature_defs "
        "export_outputs_for_mode get_export_outputs get_temp_export_dir "
        "get_timestamped_export_dir"
    ),
    "tensorflow.python.saved_model.model_utils.export_output": (
        "ClassificationOutput EvalOutput ExportOutput PredictOutput "
        "RegressionOutput TrainOutput _SupervisedOutput"
    ),
    "tensorflow.python.saved_model.model_utils.export_utils": (
        "SINGLE_FEATURE_DEFAULT_NAME SINGLE_LABEL_DEFAULT_NAME "
        "SINGLE_RECEIVER_DEFAULT_NAME build_all_signature_defs "
        "get_temp_export_dir get_timestamped_export_dir"
    ),
    "tensorflow.python.saved_model.model_utils.mode_keys": "EstimatorModeKeys",
    "tensorflow.python.saved_model.path_helpers": (
        "get_variables_dir get_variables_path"
    ),
    "tensorflow.python.saved_model.signature_constants": (
        "SUPERVISED_EVAL_METHOD_NAME SUPERVISED_TRAIN_METHOD_NAME"
    ),
    "tensorflow.python.summary.summary": "scalar",
    "tensorflow.python.tpu.device_assignment": "device_assignment",
    "tensorflow.python.tpu.feature_column": (
        "_TPUEmbeddingColumn _TPUSharedEmbeddingColumn _TPU_FC_TO_SCOPE "
        "get_sequence_length_feature_key_name_from_feature_key_name"
    ),
    "tensorflow.python.tpu.feature_column_v2": (
        "EmbeddingDevice _TENSOR_CORE_MASK_KEY_SUFFIX "
        "_TPUDeviceSpecificEmbeddingColumnV2 _TPUEmbeddingColumnV2 "
        "_TPUSharedDeviceSpecificEmbeddingColumnV2 _TPUSharedEmbeddingColumnV2 "
        "pad_sparse_embedding_lookup_indices"
    ),
    "tensorflow.python.tpu.functional": "TPUPartitionedCall",
    "tensorflow.python.tpu.ops.tpu_ops": (
        "outfeed_dequeue_tuple outfeed_enqueue_tuple tpu_ordinal_selector"
    ),
    "tensorflow.python.tpu.preempted_hook": "CloudTPUPreemptedHook",
    "tensorflow.python.tpu.tensor_tracer": "TensorTracer",
    "tensorflow.python.tpu.tpu": (
        "_TPUInferenceContext prune_unconnected_ops_from_xla split_compile_and_shard"
    ),
    "tensorflow.python.tpu.tpu_feed": "InfeedQueue _PartitionedInfeedQueue",
    "tensorflow.python.tpu.tpu_function": "on_device_training_loop",
    "tensorflow.python.tpu.tpu_replication": "_TPU_REPLICATE_ATTR",
    "tensorflow.python.tpu.tpu_system_metadata": (
        "_query_tpu_system_metadata master_job"
    ),
    "tensorflow.python.tpu.training_loop": "repeat while_loop",
    "tensorflow.python.training.basic_session_run_hooks": (
        "CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook "
        "GlobalStepWaiterHook LoggingTensorHook NanLossDuringTrainingError "
        "NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook "
        "StopAtStepHook SummarySaverHook _MultiStepStopAtStepHook"
    ),
    "tensorflow.python.training.device_setter": "STANDARD_PS_OPS",
    "tensorflow.python.training.evaluation": (
        "_MultiStepStopAfterNEvalsHook _StopAfterNEvalsHook _evaluate_once "
        "_get_or_create_eval_step"
    ),
    "tensorflow.python.training.saver.BaseSaverBuilder": "SaveSpec SaveableObject",
    "tensorflow.python.training.server_lib": "Server",
    "tensorflow.python.training.session_run_hook": (
        "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"
    ),
    "tensorflow.python.training.training": (
        "MonitoredTrainingSession get_or_create_steps_per_run_variable"
    ),
    "tensorflow.python.training.training_util": (
        "GLOBAL_STEP_READ_KEY _get_or_create_global_step_read"
    ),
    "tensorflow.python.util.all_util": "remove_undocumented",
    "tensorflow.python.util.deprecation": "deprecated hide_attribute_from_api",
    "tensorflow.python.util.function_utils": "fn_args",
    "tensorflow.python.util.tf_contextlib": "contextmanager",
    "tensorflow.python.util.tf_export": "api_export",
    "tensorflow.python.util.tf_inspect": "getfullargspec",
    "tensorflow.tools.docs.doc_controls": "inheritable_header",
}


def _find(path: str) -> Any:
    """A module, or an attribute of one, by its dotted path.

    Raises:
      LookupError: there is no such thing.
    """
    try:
        return importlib.import_module(path)
    except ImportError:
        parent, _, name = path.rpartition(".")
        if not parent:
            raise LookupError(path) from None
    try:
        return getattr(_find(parent), name)
    except AttributeError:
        raise LookupError(path) from None


def missing() -> list[str]:
    """The names of `NEEDS` that the running TensorFlow does not have."""
    lost = []
    for module, names in NEEDS.items():
        for name in names.split():
            try:
                _find(f"{module}.{name}")
            except LookupError:
                lost.append(f"{module}.{name}")
    return lost


def check() -> None:
    """Makes sure that the package finds all of TensorFlow that it needs.

    Raises:
      compat.PrivateNameMovedError: some names are missing; the message lists them.
    """
    lost = missing()
    if lost:
        raise compat.PrivateNameMovedError(stand_ins.moved("`, `".join(lost)))
