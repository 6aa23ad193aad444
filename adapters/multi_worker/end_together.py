"""The callback that ends all processes of one `fit` together."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import sys
import threading
import weakref

from absl import logging

from hookbridge import errors
from hookbridge.adapters.guests import any_flavour
from hookbridge.adapters.hooked_loop.model_loops import note_stop_of
from hookbridge.adapters.keras_model.structure import trains_in_several_processes
from hookbridge.adapters.multi_worker.agreement import Agreement, Board
from hookbridge.ground import compat
from hookbridge.ground.patching import assign
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.signals import on_sigterm
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.ground.protocols import KerasModel, Logs

# Every process counts the loops under a strategy of several processes alike.
_loops = itertools.count()
_running: weakref.WeakSet[Agreement] = weakref.WeakSet()


class EndTogether(any_flavour.Inserted):
    """The last callback of `hb.as_callbacks` in each process of a job.

    A stop that a hook or a callback has asked for ends all processes at the end of the
    same batch or epoch, that one or the next. So does SIGTERM to one of them; then all
    exit with 143. Under other strategies it does nothing.
    """

    def __init__(self) -> None:
        self._agreement: Agreement | None = None
        self._is_checked = False
        self._preempted = threading.Event()
        self._signals = contextlib.ExitStack()

    def on_train_begin(self, logs: Logs = None) -> None:
        self._leave()
        if not trains_in_several_processes(self.model):
            return
        exit_codes.use_for_errors()
        resolver = self.model.distribute_strategy.cluster_resolver
        tasks = [
            f"{job}/{index}"
            for job, addresses in resolver.cluster_spec().as_dict().items()
            if job not in ("evaluator", "ps")
            for index, _ in enumerate(addresses)
        ]
        own_task = f"{resolver.task_type}/{resolver.task_id}"
        board = Board(f"hookbridge/{next(_loops)}")
        other_tasks = [task for task in tasks if task != own_task]
        self._agreement = Agreement(board, own_task, other_tasks)
        self._is_checked = False
        if not _running:
            atexit.unregister(_leave_all)
            atexit.register(_leave_all)
        _running.add(self._agreement)
        self._preempted.clear()
        self._signals.enter_context(on_sigterm(self._preempted.set))

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """End the training here if all processes have agreed on it."""
        if self._agreement is None:
            return
        if not self._is_checked:
            self._is_checked = True
            self._agreement.check_others()
        self._end_if_agreed(self._agreement)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._agreement is not None and self._is_checked:
            self._end_if_agreed(self._agreement)

    def _end_if_agreed(self, agreement: Agreement) -> None:
        """End the training here if the workers have agreed to."""
        wants_end = bool(self.model.stop_training)
        is_preempted = self._preempted.is_set()
        code = exit_codes.PREEMPTED if is_preempted else exit_codes.DONE
        ends = agreement.ends_here(wants_end or is_preempted, code)
        if ends and agreement.code == exit_codes.PREEMPTED:
            _end_preempted()
        if ends and not wants_end:
            note_stop_of(self.model)
        # `stop_training` becomes what all have agreed on. A process that asked early
        # takes its stop back until the agreed point: all make the same steps.
        if ends != wants_end:
            assign(self.model, stop_training=ends)

    def on_train_end(self, logs: Logs = None) -> None:
        self._leave()

    def _leave(self) -> None:
        self._signals.close()
        agreement, self._agreement = self._agreement, None
        if agreement is not None:
            _running.discard(agreement)
            agreement.leave()


def _leave_all() -> None:
    """End all threads: one that outlives the interpreter could abort the process."""
    for agreement in list(_running):
        with contextlib.suppress(Exception):
            agreement.leave()


def _end_preempted() -> None:
    """Let this process exit with 143, unless an error ends it."""
    logging.warning(
        "hookbridge: a process of this job received SIGTERM; `fit` ends after this "
        "step in all processes, and they exit with %d.",
        exit_codes.PREEMPTED,
    )
    atexit.unregister(_exit_preempted)
    atexit.register(_exit_preempted)


def _exit_preempted() -> None:
    if getattr(sys, "last_value", None) is None:
        exit_codes.end_with(exit_codes.PREEMPTED)


def may_be_one_of_several() -> bool:
    """Return whether this process is, or may become, one of several that call `fit`."""
    config, jobs = ClusterConfig.from_environment(), compat.connected_jobs()
    if "ps" in jobs or "ps" in config.cluster or config.task == "evaluator":
        return False
    training_jobs = [job for job in config.cluster if job != "evaluator"]
    return bool(jobs) or sum(len(config.cluster[job]) for job in training_jobs) > 1


def refuse_keras3_model(model: KerasModel, name: str) -> None:
    """Refuse a model of Keras 3, which cannot train in several processes.

    Args:
      model: the model whose `fit` has begun.
      name: the callback that the error names.

    Raises:
      errors.RefusedError: it is one of Keras 3.
    """
    if not hasattr(model, "_train_counter"):
        raise errors.RefusedError(
            f"`{name}`: Keras 3 cannot train under `MultiWorkerMirroredStrategy`. Make "
            f"the model with {compat.keras_2_advice()}.",
            see="several workers",
        )
