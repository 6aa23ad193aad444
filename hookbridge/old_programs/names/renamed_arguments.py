"""Methods and arguments that have another name today."""

from __future__ import annotations

# Method -> its name today.
METHODS = {"export_savedmodel": "export_saved_model"}
# (Method or function, old argument) -> its name today; empty for a call of `prefetch`.
ARGUMENTS = {
    ("add_meta_graph_and_variables", "legacy_init_op"): "main_op",
    ("add_meta_graph", "legacy_init_op"): "main_op",
    ("map", "num_threads"): "num_parallel_calls",
    ("map", "output_buffer_size"): "",
}
