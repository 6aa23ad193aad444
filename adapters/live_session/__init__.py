"""The session a hook sees under `fit`, over the variables of a Keras model.

The words of this room and of `fit_loop`:

* A *step tensor* is a tensor of the model's traced step. Its *key* identifies it:
  `loss`, a metric, `gradients/<variable>`, or its name in the graph of the step.
* A *name* is what a hook asks for; `StepNames` finds the step tensor that it means.
* The live graph has a *placeholder* for each step tensor that is in use. The step
  tensors that the step has to return are *tapped*.

Read in this order: `session` (what a hook calls), `plan` and `program` (what one
`run` does), `graph` and `step_names` (what a hook can look up), `graph_variables`,
`global_step` (what the graph shows of the model); `growing_graph`; `feeds` (what hooks
may feed); then `needed_ops`, `imported_ops` and `run_options` (how ops of the graph get
into a `tf.function`).
"""
