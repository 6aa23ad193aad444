"""The live graph of one run in Keras's loops, and the global step in it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.spies import SCHEDULED_RATE
from hookbridge.adapters.fit_loop.step_source import StepFunctionProtocol
from hookbridge.adapters.fit_loop.tapped_function import NO_FEEDS, RateFeed, StepFeeds
from hookbridge.adapters.hooked_loop.host import GraphPart
from hookbridge.adapters.hooked_loop.model_values import ModelValues
from hookbridge.adapters.keras_model import optimizers, variables
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession, StepRunner
from hookbridge.ground import compat
from hookbridge.ground.protocols import Context, KerasModel
from hookbridge.ground.structures import RecentlyUsed


class FitGraphPart(GraphPart):
    """What hooks see of an eager model."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        # What the step trains with, as hooks see it.
        self.optimizer: Any = None
        # Holds a schedule's rate for ops that were made for a constant one.
        self.shown_rate: tf.Variable | None = None
        # That of `model.optimizer`; None for a schedule, or if the step reads none.
        self._rate: tf.Variable | None = None
        self._other_rates: list[tf.Variable] = []
        # Whether `live` and `global_step` are there: from `build` on.
        self.is_built: bool = False
        # `{placeholder: value}` of the last step, for runs without a step.
        self.last_values: dict[str, Any] = {}

    def build(self, function: StepFunctionProtocol) -> int:
        """Make the graph of a model with this step; return the global step."""
        self.global_step: GlobalStep = GlobalStep(self._model)
        self._find_rates(function)
        self.live: LiveGraph = LiveGraph(
            function.names,
            variables.model_variables(self._model),
            self.global_step.variable,
            self._rate,
            self._other_rates,
        )
        self.is_built = True
        return self.step_number

    def renew(self, function: StepFunctionProtocol) -> None:
        """Show hooks what the model has after a callback has changed its step."""
        self._find_rates(function)
        shown, self.shown_rate = self._rate, None
        schedule = optimizers.scheduled_rate(self.optimizer)
        if schedule is not None and self.live.learning_rate_name is not None:
            shown = self.shown_rate = variables.host_variable(self._next_rate)
        now = variables.model_variables(self._model)
        self.live.renew(function.names, now, shown, self._other_rates)

    def show_rate(self) -> None:
        """Compute a schedule's rate for ops that were made for a constant one."""
        if self.shown_rate is not None:
            self.shown_rate.assign(self._next_rate())

    def _find_rates(self, function: StepFunctionProtocol) -> None:
        model, names = self._model, function.names
        self._names, self.optimizer = names, function.optimizer
        rates, read = optimizers.learning_rates(model), names.rates_read
        if read is not None and not names.is_eager:
            rates = [rate for rate in rates if id(rate) in read]
        rate_of_model = optimizers.constant_rate(self.optimizer)
        self._rate = next((rate for rate in rates if rate is rate_of_model), None)
        self._other_rates = [rate for rate in rates if rate is not rate_of_model]

    def make_session(self, run_step: StepRunner, traced: RecentlyUsed) -> LiveSession:
        """Return a session on the graph.

        Args:
          run_step: makes a step for the session.
          traced: keeps what the session traces, longer than the run.
        """
        return LiveSession(
            self.live,
            self.global_step,
            run_step,
            self.last_values,
            traced,
            outside_steps={SCHEDULED_RATE: self._next_rate},
        )

    def _next_rate(self) -> Any:
        """Return the rate of the next step, as a session computes it."""
        return optimizers.rate_of_next_step(self.optimizer)

    @property
    def step_number(self) -> int:
        return int(self.global_step.value)

    def values(self) -> ModelValues:
        step = self.global_step.variable
        saved = [v for v in self.live.variables.saved().values() if v is not step]
        with compat.private("eager_mode")():
            # An eager variable shares its value until it gets another one: no copy. A
            # distributed one would enter its strategy, under any graph.
            firsts = [variables.components(variable.eager)[0] for variable in saved]
            # The op alone takes a tenth of the time of `read_value`, and this is called
            # several times for each save.
            return ModelValues(
                [
                    tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=v.dtype)
                    for v in firsts
                ]
            )

    def calling_hooks(self) -> Context:
        return self.live.as_default()  # type: ignore[no-any-return]

    def feeds_of_step(self, program: SessionProgram) -> StepFeeds:
        """Return which feeds of a program go into the step."""
        if not program.feeds:
            return NO_FEEDS
        rate, other_rates, tensors, graph = None, [], {}, self.live
        for index, tensor in enumerate(program.feeds):
            if tensor.name == graph.learning_rate_name:
                if self._rate is None:
                    tensors[SCHEDULED_RATE] = index
                else:
                    rate = RateFeed(self._rate, index)
            elif tensor.op.name in graph.step_tensors:
                key = graph.step_tensors[tensor.op.name].key
                if key == SCHEDULED_RATE and self._rate is not None:
                    rate = RateFeed(self._rate, index)
                else:
                    tensors[key] = index
            elif (variable := graph.variables.find_by_value(tensor)) is not None:
                if not any(variable.eager is v for v in self._other_rates):
                    raise errors.LiveSessionError(
                        f"A hook feeds `{variable.name}:0`, the value of a variable, "
                        "but the model's step reads the variable itself and would "
                        "ignore the fed value. Assign the value in `before_run`: "
                        "`variable.load(value, run_context.session)`.",
                        see="live session",
                    )
                other_rates.append(RateFeed(variable.eager, index))
        return StepFeeds(rate, tuple(other_rates), tensors)

    def check_rate(self, fed: StepFeeds) -> None:
        """Refuse, after a step that ran eagerly, a fed rate that it has not read."""
        read = self._names.rates_read
        if (
            fed.rate is not None
            and read is not None
            and id(fed.rate.variable) not in read
        ):
            raise errors.LiveSessionError(
                "A hook feeds `learning_rate:0`, the rate of `model.optimizer`, but "
                "the eager step has not used this optimizer. Feed the rate of an "
                "optimizer that the step uses, by the name of its variable.",
                see="live session",
            )

    def remember(self) -> None:
        if self.is_built:
            self.global_step.remember()

    def recall(self) -> None:
        """Take the steps that loops inside this one have made since `remember`."""
        if self.is_built:
            self.global_step.recall()
