"""A coordinator that ends while its threads still make iterators nobody needs.

TF_CONFIG=... python tests/adapters/parameter_server/exit_job.py EVENTS
"""

from __future__ import annotations

import atexit
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
HELPERS = [str(HERE.parent / "helpers"), str(HERE.parents[1] / "helpers")]
sys.path[:0] = [str(HERE), *HELPERS, str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from ps_guests import note  # noqa: E402

import hookbridge as hb  # noqa: E402


def note_threads() -> None:
    """Notes the threads that still run when the interpreter ends."""
    note("ends", threads=[thread.name for thread in threading.enumerate()])


def main() -> None:
    if hb.loops.ClusterConfig.from_environment().is_chief:
        atexit.register(note_threads)  # what is registered first is called last
    strategy = hb.loops.parameter_server_strategy()
    coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
    datasets = coordinator.create_per_worker_dataset(
        tf.function(
            lambda: strategy.distribute_datasets_from_function(
                lambda _: tf.data.Dataset.range(3)
            )
        )
    )
    # Threads make the iterators, one after another; `iter` does not wait.
    iterators = [iter(datasets) for _ in range(100)]
    note("leaves", iterators=len(iterators))


if __name__ == "__main__":
    main()
