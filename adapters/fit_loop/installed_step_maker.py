"""What all makers of steps do that a loop calls through an installation."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.fit_graph import FitGraphPart
from hookbridge.adapters.fit_loop.step_source import StepInstallation
from hookbridge.adapters.hooked_loop.epoch_means import EpochMeans, MetricMeans
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import StepMaker
from hookbridge.ground.protocols import KerasModel


class InstalledStepMaker(StepMaker):
    """Gives each step to `MonitoredSession`, and its outputs to the native loop.

    Args:
      run: the run whose steps are made.
      graph: what hooks see of the model.
      installation: what makes the loop call the run.
    """

    def __init__(
        self, run: HookedRun, graph: FitGraphPart, installation: StepInstallation
    ) -> None:
        self._run = run
        self._graph = graph
        self._installation = installation
        self._has_outputs = False  # whether a step was made

    @abc.abstractmethod
    def take_outputs(self) -> Any:
        """Return what the native loop gets from the step that was made last, once."""

    def run(self, monitored: tf.compat.v1.train.MonitoredSession) -> Any:
        monitored.run(self._graph.live.loop_fetches)
        self._has_outputs = True
        return self.take_outputs()

    def stopped_by(self, error: BaseException) -> Any:
        outputs = self.take_outputs()
        if outputs is not None:
            return outputs  # `after_run` raised: the step has been made
        return self._installation.without_step(error, is_first=not self._has_outputs)

    def means_of(self, model: KerasModel) -> EpochMeans:
        return MetricMeans(model)

    def suspend(self) -> None:
        self._installation.suspend()

    def resume(self) -> None:
        self._installation.resume()

    def leave(self) -> None:
        self._installation.leave()
