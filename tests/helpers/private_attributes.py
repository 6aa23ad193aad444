"""Private attributes of TensorFlow's and Keras's objects that the package reads.

A name of a module can be looked up by its path, an attribute of an object cannot. So
each attribute is used where it is needed, and listed here.
`tests/test_private_attributes.py` looks for each attribute on its owner on every
supported version, and finds attributes that are not listed.
"""

from __future__ import annotations

from hookbridge.ground import compat

_VERSIONS = compat.installed_versions()
_KERAS = _VERSIONS.get("keras") or _VERSIONS["keras-nightly"]
# Of the package `keras`; collecting tests must not import it.
KERAS_VERSION = tuple(map(int, _KERAS.split(".")[:2]))


_AS_HEAD = "what the head of `tf.contrib.estimator` returned"
_AS_TASK = "makes the copy of an Estimator that one task of a strategy runs"

# Owner -> its attributes, and why no public attribute is enough. Owners that begin with
# `Keras 3` are not in TF 2.15.
ATTRIBUTES: dict[str, dict[str, str]] = {
    "CheckpointSaverHook": {
        "_checkpoint_dir": "where the callbacks' state is saved and restored",
        "_get_saver": "to write a checkpoint again when callbacks have set variables",
        "_listeners": "to be told of each checkpoint for one run only",
        "_save": "to save before the end that is forced on callbacks, as in its `end`",
        "_save_path": "where the callbacks' state is saved before a checkpoint",
        "_scaffold": "the saver of the session is that of the hook",
        "_timer": "whether it saves after the next step, the last in flight",
    },
    "MonitoredSession's creator": {"_hooks": "which other hooks of a session save"},
    "v1 optimizer": {
        "_create_slots": "to make the slots that a checkpoint has",
        "_non_slot_dict": "the variables that a checkpoint has, besides slots",
        "_slots": "the slots that a checkpoint has, in the order of their names",
    },
    "Saver": {"_pad_step_number": "how the files of a background save are called"},
    "SummarySaverHook": {"_output_dir": "checked before training for writing"},
    "FinalOpsHook": {"_final_ops": "what steps have to return for its `end`"},
    "GlobalStepWaiterHook": {"_wait_until_step": "whether it would wait for ever"},
    "SessionRunContext": {"_stop_requested": "to stop after steps that are scheduled"},
    "Session": {"_config": "whether plain runs of the session write metadata"},
    "Operation": {
        "_id": "the order in which the operations of a graph were made",
        "_update_input": "to give a step the value that a hook feeds",
    },
    "tf.function": {"_clone": "a step with guests has the user's own options"},
    "Graph": {"_unsafe_unfinalize": "Keras adds to its graph between steps"},
    "graph variable": {
        "_as_graph_element": "whether a session can fetch what a hook holds",
        "_graph_element": "the name by which hooks fetch it",
        "_save_slice_info": "where a checkpoint has a part of a partitioned variable",
    },
    "ParameterServerStrategy": {"_cluster_coordinator": "the coordinator of its steps"},
    "ClusterCoordinator": {"_cluster": "the queue of what is scheduled"},
    "RemoteValue": {
        "_error": "whether a scheduled step is done",
        "_has_fetched_to_local": "whether a scheduled step is done",
        "_type_spec": "what a scheduled function is traced for",
    },
    "PerWorkerValues": {"_values": "what a scheduled function is traced for"},
    "Keras 2 model": {
        "_build_input_shape": "to build the clone of a subclassed model",
        "_cluster_coordinator": "the coordinator that runs the steps of `fit`",
        "_flatten_layers": "the layers at every depth",
        "_is_graph_network": "whether `clone_model` can clone it",
        "_self_tracked_trackables": "what programs of TensorFlow 1 read as `_layers`",
        "_maybe_load_initial_counters_from_ckpt": "the step of a restored backup",
        "_steps_per_execution": "how many steps a call of the train function makes",
        "_train_counter": "how many steps a call has made",
    },
    "Keras 2 backend": {
        "_SESSION": "the session that the threads of a program share",
        "_get_session": "which session a thread gets that has no graph",
    },
    "Keras 2 data handler": {
        "_inferred_steps": "to end a loop of Keras 2 without a warning"
    },
    "Keras 2 graph model": {
        "_distribution_strategy": "to refuse hooks under a strategy",
        "_make_train_function": "that its steps are runs of a session",
    },
    "Keras 2 graph function": {
        "_callable_fn": "to make the callable of a step anew",
        "_make_callable": "to make it of the session that hooks see",
    },
    "Keras 2 graph variable": {
        "_keras_initialized": "which variables are left to initialise"
    },
    "Keras 2 variable of mixed precision": {
        "_variable": "the variable inside, whose use a callback's model has to see"
    },
    "Keras 2 optimizer": {"_learning_rate": "the variable or the schedule"},
    "Keras 2 legacy optimizer": {
        "_initial_decay": "the rate of a step with `decay=`",
        "_create_all_weights": "to make the slots that a checkpoint has",
        "_hyper": "whether its `lr` is a schedule; variables that a graph has",
    },
    "Keras 2 scaled optimizer": {"_loss_scale": "the scale that a checkpoint has"},
    "Keras 2 callback": {
        "_chief_worker_only": "Keras's own role of a callback",
        "_supports_tf_logs": "whether Keras converts logs for it",
    },
    "TensorBoard of v1": {"_profile_batch": "the batch that it is to profile"},
    "Keras 2 callback's method": {"_is_default": "whether a guest overrides it"},
    "Keras 3 callback's method": {"_is_default": "whether a guest overrides it"},
    "Keras 3 EarlyStopping": {"_set_monitor_op": "sets `best` before Keras 3.7"},
    "Keras 3 model": {
        "_flatten_layers": "the layers at every depth",
        "_initial_epoch": "the epoch of a restored backup",
    },
    "Keras 3 optimizer": {
        "_iterations": "how many steps a call has made",
        "_learning_rate": "the variable or the schedule",
        "_trainable_variables": "whose gradients `apply` gets",
    },
    "Keras 3 variable": {"_value": "that there is a `tf.Variable` inside"},
    "Keras 3 metric": {"_direction": "whether it should rise or fall"},
    "Keras 3 BackupAndRestore": {"_weights_path": "the file that it saves to"},
    "Estimator": {
        "_config": "that of the copy for one task",
        "_model_fn": "to add the guests of a Keras model",
    },
    "RunConfig": {
        "_cluster_spec": _AS_TASK,
        "_evaluation_master": _AS_TASK,
        "_experimental_distribute": "what the user gave as `experimental_distribute`",
        "_global_id_in_cluster": _AS_TASK,
        "_init_distributed_setting_from_environment_var": "to read `TF_CONFIG` anew",
        "_is_chief": _AS_TASK,
        "_master": _AS_TASK,
        "_maybe_overwrite_session_config_for_distributed_training": "as it does itself",
        "_num_ps_replicas": _AS_TASK,
        "_num_worker_replicas": _AS_TASK,
        "_service": _AS_TASK,
        "_task_id": _AS_TASK,
        "_task_type": _AS_TASK,
        "_train_distribute": "what the user gave as `train_distribute`",
    },
    "Estimator's code": {
        "_distribute_coordinator_mode": "tells it that a coordinator runs the tasks"
    },
    "Estimator's heads": {
        "_assert_range": "what `tf.contrib.estimator`'s heads asked of their labels",
        "_binary_logistic_head_with_sigmoid_cross_entropy_loss": _AS_HEAD,
        "_multi_class_head_with_softmax_cross_entropy_loss": _AS_HEAD,
        "_regression_head": _AS_HEAD,
    },
    "Estimator's run_config": {"_get_global_id_in_cluster": _AS_TASK},
    "Estimator's executor": {
        "_start_continuous_evaluation": "the loop of an evaluator with a strategy"
    },
}
